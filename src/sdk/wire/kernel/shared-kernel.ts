/** The kernel that everyone in this process or page shares: one memory, one scratch buffer, single-threaded as we are. */
import { JsKernel } from './js-kernel.ts'
import type { Kernel } from './kernel.ts'
import { WasmKernel } from './wasm-kernel.ts'

let shared: Kernel | undefined

/** @returns the WebAssembly kernel, or the plain one where WebAssembly is missing or forbidden (some content policies). */
export function sharedKernel(): Kernel {
  shared ??= createKernel()
  return shared
}

function createKernel(): Kernel {
  try {
    return new WasmKernel()
  } catch {
    return new JsKernel()
  }
}
