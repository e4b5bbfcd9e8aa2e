/** How each client of the catalog is made ready. */
import { prepareGoClient } from './go.ts'
import { prepareJavaClient } from './java.ts'
import type { Prepare } from './program.ts'
import { preparePythonClient } from './python.ts'
import { prepareIggyCli, prepareRustClient } from './rust.ts'

export const PREPARATIONS: Readonly<Record<string, Prepare>> = {
  python: preparePythonClient,
  rust: prepareRustClient,
  go: prepareGoClient,
  java: prepareJavaClient,
  'iggy-cli': prepareIggyCli,
}
