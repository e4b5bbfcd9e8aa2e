/** Recorded sessions, frame by frame: each reply beside the code of the request it answers. */
import { readdirSync, readFileSync } from 'node:fs'
import { CODE, codeOfOperation, commandName, OPERATION } from '../../../../../src/sdk/wire/codes.ts'
import type { Dialect } from '../../../../../src/sdk/wire/dialect.ts'

const FOLDER = new URL('../../../../fixtures/iggy/transcripts/', import.meta.url)

export interface RecordedFrame {
  readonly file: string
  readonly dialect: Dialect
  readonly direction: 'request' | 'reply'
  /** Of the request, also on its reply; undefined for evictions. */
  readonly code: number | undefined
  readonly bytes: Uint8Array
  /** Longer than the recording keeps: `bytes` is the beginning alone. */
  readonly isCut: boolean
  readonly note: string
}

interface Transcript {
  readonly dialect: string
  readonly connections: readonly { readonly frames: readonly TranscriptFrame[] }[]
}

interface TranscriptFrame {
  readonly dir: string
  readonly hex?: string
  readonly note: string
}

export function recordedFrames(): RecordedFrame[] {
  const files = readdirSync(FOLDER).filter((name) => /^(classic|v5).*\.json$/.test(name))
  return files.sort().flatMap((file) => framesOf(file, JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))))
}

function framesOf(file: string, transcript: Transcript): RecordedFrame[] {
  const dialect: Dialect = transcript.dialect === 'classic' ? 'classic' : 'vsr'
  return transcript.connections.flatMap(({ frames }) => {
    return frames.flatMap((frame): RecordedFrame[] => {
      if (!frame.hex) return []
      const isCut = frame.hex.includes('...')
      const hex = frame.hex.slice(0, isCut ? frame.hex.indexOf('...') & ~1 : undefined)
      const bytes = Uint8Array.fromHex(hex)
      const direction = frame.dir === 'c' ? 'request' : 'reply'
      const code = direction === 'request' ? codeOf(dialect, bytes) : codeOfNote(frame.note)
      return [{ file, dialect, direction, code, bytes, isCut, note: frame.note }]
    })
  })
}

const CODES_BY_NAME = new Map(Object.values(CODE).map((code): [string, number] => [commandName(code), code]))

/** Repeated requests are dropped from the recordings, so replies are told by what their note begins with. */
function codeOfNote(note: string): number | undefined {
  const name = /^(\w+) reply/.exec(note)?.[1]?.replace(/_pat(s?)$/, '_personal_access_token$1')
  return name === undefined ? undefined : CODES_BY_NAME.get(name)
}

function codeOf(dialect: Dialect, bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer)
  if (dialect === 'classic') return view.getUint32(4, true)
  const operation = view.getUint8(176)
  return operation === OPERATION.nonReplicated ? view.getUint32(196, true) : codeOfOperation(operation)
}
