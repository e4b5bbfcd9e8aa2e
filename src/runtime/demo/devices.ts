/** The demo's devices: three programs that publish this machine's vitals over QUIC, as a board with sensors would. */
import { connect, type Device } from '../../sdk/index.ts'
import { readDiskAndHeat, readLoad, readMemory, type Vital } from './vitals.ts'

export interface DemoDevice {
  readonly name: string
  /** Readings sent, and the ones the edge has promised to keep. */
  readonly published: number
  readonly acknowledged: number
  readonly carrier: 'quic' | 'http2' | null
  /** No further readings; resolves when every one sent has been acknowledged. */
  drain(): Promise<void>
  close(): Promise<void>
}

export interface DemoDeviceOptions {
  readonly name: string
  readonly token: string
  /** `host:port` of WebTransport. */
  readonly address: string
  readonly certificateSha256: string
  readonly topic: string
  readonly intervalMs: number
  read(): readonly Vital[]
}

/** Numbers travel as scaled integers: a load of 0.52 as 52 with scale -2. */
const SCALE = -2

export async function startDevice(options: DemoDeviceOptions): Promise<DemoDevice> {
  const { name, token, address, certificateSha256 } = options
  const url =
    `edge+wt://${encodeURIComponent(token)}@${address}?device=${name}&certificate_hash=${certificateSha256}` as const
  const device: Device = await connect(url)
  const fields = options.read().map(({ name: field, unit }) => ({ name: field, unit, scale: SCALE }))
  const alias = device.alias(options.topic, 'numbers', { fields })
  const waiting = new Set<Promise<unknown>>()
  let published = 0
  let acknowledged = 0
  const publish = () => {
    const values = options.read().map(({ value }) => Math.round(value * 10 ** -SCALE))
    const sent = device.publish(alias, values.length === 1 ? (values[0] ?? 0) : values)
    published++
    waiting.add(sent)
    sent.then(
      () => acknowledged++,
      () => {}, // counted as not acknowledged: the demo's verdict names it
    )
    sent.finally(() => waiting.delete(sent)).catch(() => {})
  }
  publish()
  const timer = setInterval(publish, options.intervalMs)
  return {
    name,
    get published() {
      return published
    },
    get acknowledged() {
      return acknowledged
    },
    get carrier() {
      return device.carrier
    },
    async drain() {
      clearInterval(timer)
      await Promise.allSettled(waiting)
    },
    async close() {
      clearInterval(timer)
      await device.close()
    },
  }
}

export const DEMO_DEVICES = [
  { name: 'load-sensor', read: readLoad },
  { name: 'memory-sensor', read: readMemory },
  { name: 'disk-sensor', read: () => readDiskAndHeat('/') },
] as const
