/**
 * Calls C functions of this process, for what Node has no interface to: of the C library, and of those that Node carries.
 * Each caller names its own and does without them where there are none: not every C library has all of them, and not every
 * Node has `node:ffi`.
 */
import type { FunctionDefinitions, WrappedFunctionsFromDefinitions } from 'node:ffi'

/** @throws {Error} when this Node has no `node:ffi`, or this process one of the functions not. */
export function cFunctions<const T extends FunctionDefinitions>(signatures: T): WrappedFunctionsFromDefinitions<T> {
  return foreignFunctions().dlopen(null, signatures).functions
}

/**
 * @returns what tells where a view's bytes lie in this process: they must not be given back before the call that is given
 *   this has ended.
 * @throws {Error} when this Node has no `node:ffi`.
 */
export function addressing(): (view: NodeJS.ArrayBufferView) => bigint {
  return foreignFunctions().getRawPointer
}

/**
 * Node warns at the first use that this interface may change, which tells whoever runs the edge nothing: its Node is pinned.
 * Nothing else can warn meanwhile, as this is one synchronous call.
 */
function foreignFunctions(): typeof import('node:ffi') {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:ffi')
  } finally {
    process.emitWarning = emitWarning
  }
}
