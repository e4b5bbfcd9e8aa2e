/** How the recorder, which is the executable before it has compiled code, is told to write what V8 holds, and to end. */
export const RECORD_SIGNAL = 'SIGUSR2'
export const RECORD_FOLDER_VARIABLE = 'COMPILED_CODE_FOLDER'
