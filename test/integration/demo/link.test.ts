import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type Link, openLink } from '../../../src/runtime/demo/link.ts'

describe('a link that can be cut', () => {
  const echo = createServer((socket) => socket.pipe(socket).on('error', () => {}))
  let link: Link
  before(async () => {
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
    const bound = echo.address()
    assert.ok(typeof bound === 'object' && bound !== null)
    link = await openLink({ host: '127.0.0.1', port: bound.port })
  })
  after(async () => {
    await link.close()
    await new Promise((resolve) => echo.close(resolve))
  })

  const dial = () => connect(link.port, link.host).on('error', () => {})
  const roundTrip = async (socket: Socket) => {
    socket.write('hello')
    const [chunk] = await once(socket, 'data')
    return String(chunk)
  }

  it('carries bytes both ways, drops them when cut and carries again after', async () => {
    const first = dial()
    assert.equal(await roundTrip(first), 'hello')
    link.cut()
    await once(first, 'close')
    const refused = dial()
    await once(refused, 'close')
    link.restore()
    const second = dial()
    assert.equal(await roundTrip(second), 'hello')
    second.destroy()
  })
})
