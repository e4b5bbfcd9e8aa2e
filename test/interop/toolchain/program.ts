/** A client's program, ready to run. */
export interface Program {
  readonly command: string
  /** Before the scenarios' own arguments. */
  readonly arguments: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

/** Makes the program of one version of a client. @throws {Unavailable} */
export type Prepare = (version: string) => Promise<Program>
