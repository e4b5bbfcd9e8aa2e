/**
 * V8's collector, called by hand. It is handed out only under a flag which, on the command line, makes V8 refuse Node's own
 * compiled code (97 modules at the start of an edge); so the flag is set for the moment in which the collector is taken.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A full collection: what is unreachable is gone when it returns, and native objects with it. */
export function collectGarbage(): void {
  takeCollector()({ type: 'major', execution: 'sync' })
}

/** Drops code that does not run at the moment, too, and gives free pages back to the system: 30 to 100 ms. */
export function collectEverything(): void {
  takeCollector()({ type: 'major', flavor: 'last-resort', execution: 'sync' })
}

function takeCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc')
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
