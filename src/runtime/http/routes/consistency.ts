import type { HttpRequest } from '../http-types.ts'

/** Checks `?consistency=`: one node always answers with its newest state, so both values mean the same here. */
export function readConsistency(request: HttpRequest): void {
  request.query.oneOf('consistency', ['serializable', 'linearizable'])
}
