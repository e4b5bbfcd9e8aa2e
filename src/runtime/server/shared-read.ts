/**
 * Reads many sockets into one buffer. Node gives every read a buffer of its own, 64 KiB each time, which costs a busy
 * gateway a seventh of its requests and ten megabytes of garbage; `onread` avoids that, but only for sockets one makes
 * oneself. So the handle of an accepted socket is taken over by such a one. The handle is not part of Node's interface:
 * where it is not there, the socket is read as usual.
 */
import { Socket, type SocketConstructorOpts } from 'node:net'
import { sharedKernel } from '../../sdk/wire/kernel/shared-kernel.ts'

const READ_BUFFER_BYTES = 64 * 1024
let shared: Uint8Array | null = null

/**
 * @param accepted not read yet: the server was made with `pauseOnConnect`.
 * @param receive uses the view up before it returns: the next read of any socket overwrites it.
 * @returns the socket to go on with; the accepted one is done for when it is another.
 */
export function readShared(accepted: Socket, receive: (view: Uint8Array) => void): Socket {
  const handle: unknown = Reflect.get(accepted, '_handle')
  if (typeof handle !== 'object' || handle === null || !('readStart' in handle)) {
    accepted.on('data', receive)
    return accepted
  }
  Reflect.set(accepted, '_handle', null)
  accepted.destroy()
  // The kernels work in place on what lies in their memory.
  shared ??= sharedKernel().reserve(READ_BUFFER_BYTES)
  const buffer = shared
  const callback = (size: number) => {
    receive(buffer.subarray(0, size))
    return true
  }
  const options = { handle, allowHalfOpen: true, onread: { buffer, callback } }
  // The types know handles of bound sockets only; Node takes this one as it takes those.
  return new Socket(options as unknown as SocketConstructorOpts)
}
