/** The client of Iggy and of iggy-edge: connect, send, poll, publish readings. Usage: `docs/sdk.md`. */
import { EdgeError } from '../errors.ts'
import { Client, type ClientOptions } from './client/client.ts'
import { type ConnectionTarget, parseConnectionString } from './connection-string.ts'
import { Device, type DeviceOptions } from './device/device.ts'
import { tcpDial } from './transport/tcp.ts'
import type { Dial } from './transport/transport.ts'
import { dialWebTransport, probeQuic, webTransportDial } from './transport/webtransport.ts'

export { EdgeError, type ErrorCode, type ErrorKind } from '../errors.ts'
export type { Polled, PollOptions } from './api/messages.ts'
export type { StoredOffset } from './api/offsets.ts'
export type { ClusterMetadata, OptionDescription, ServerStats } from './api/system.ts'
export type { TokenInfo } from './api/tokens.ts'
export type { NewTopic, TopicSettings } from './api/topics.ts'
export type { NewUser } from './api/users.ts'
export { Client, type ClientOptions, type ClientState } from './client/client.ts'
export {
  Connection,
  type ConnectionSettings,
  fixedPatience,
  type Patience,
  type RequestOptions,
} from './client/connection.ts'
export { type CommitMode, type ConsumedMessage, Consumer, type ConsumerOptions } from './client/consumer.ts'
export {
  decodeHeaders,
  type HeaderValue,
  type OutgoingMessage,
  type PolledMessage,
  packMessages,
  type UserHeader,
  unpackMessages,
} from './client/messages.ts'
export { Producer, type ProducerOptions, type Spool } from './client/producer.ts'
export { Backoff, type BackoffPolicy } from './client/retry.ts'
export { errorOfStatus, iggyCodeOf } from './client/server-error.ts'
export { openSpoolFile } from './client/spool-file.ts'
export {
  type ConnectionCredentials,
  type ConnectionOptions,
  type ConnectionTarget,
  DEFAULT_CONNECTION_OPTIONS,
  describeTarget,
  type Generation,
  parseConnectionString,
  type Scheme,
} from './connection-string.ts'
export { SDK_DEFAULTS } from './defaults.ts'
export { Device, type DeviceMessage, type DeviceOptions, type Published } from './device/device.ts'
export type { AliasKind, DeviceEvent } from './device/device-core.ts'
export {
  decodeSenmlCbor,
  decodeSenmlJson,
  encodeSenmlCbor,
  encodeSenmlJson,
  type SenmlPack,
  type SenmlRecord,
} from './senml/pack.ts'
export { type Reading, type ReadingValue, resolveSenml, senmlOfReadings } from './senml/resolve.ts'
export { networkNow } from './transport/network.ts'
export { openSocket, type TcpOptions, tcpDial } from './transport/tcp.ts'
export type { Dial, Transport, TransportEvents } from './transport/transport.ts'
export { dialWebTransport, probeQuic, type WebTransportSession, webTransportDial } from './transport/webtransport.ts'

export type DeviceConnectOptions = Omit<DeviceOptions, 'name' | 'auth' | 'dial'>

/**
 * Connects to a server and logs in: `iggy://`, `iggy+tcp://`, `iggy+wt://` give a `Client`, `edge+wt://` a `Device`.
 *
 * @throws {EdgeError} EDGE_CONFIG_INVALID for the string; EDGE_UPSTREAM_UNREACHABLE, EDGE_UPSTREAM_TIMEOUT,
 *   EDGE_CREDENTIALS_INVALID .. for the first attempt of a client. A device is started and keeps trying.
 */
export async function connect(text: `edge+wt://${string}`, options?: DeviceConnectOptions): Promise<Device>
export async function connect(text: string, options?: ClientOptions): Promise<Client>
export async function connect(
  text: string,
  options: ClientOptions | DeviceConnectOptions = {},
): Promise<Client | Device> {
  const target = parseConnectionString(text)
  if (target.scheme === 'device') {
    const device = new Device({ ...(options as DeviceConnectOptions), ...deviceIdentity(target) })
    device.start()
    return device
  }
  const client = new Client(target, dialOf(target), options as ClientOptions)
  await client.open()
  return client
}

/** @returns how to reach a target that speaks the binary protocol. @throws {EdgeError} EDGE_FEATURE_UNAVAILABLE. */
export function dialOf(target: ConnectionTarget): Dial {
  const { host, port, options } = target
  if (target.scheme === 'tcp') return tcpDial({ host, port, ...options })
  if (target.scheme === 'webtransport')
    return webTransportDial({ host, port, path: '/iggy', carrier: 'any', ...options })
  throw new EdgeError('EDGE_FEATURE_UNAVAILABLE', `${target.scheme}: the client speaks the binary protocol only`)
}

function deviceIdentity(target: ConnectionTarget): Pick<DeviceOptions, 'name' | 'auth' | 'dial' | 'probeQuic'> {
  const { host, port, options, credentials } = target
  if (options.device === '') throw new EdgeError('EDGE_CONFIG_INVALID', 'edge+wt: expected ?device=NAME')
  if (credentials?.kind !== 'token')
    throw new EdgeError('EDGE_CONFIG_INVALID', 'edge+wt: expected a token before the @')
  const where = { host, port, path: '/edge', carrier: 'any', ...options } as const
  return {
    name: options.device,
    auth: new TextEncoder().encode(credentials.token),
    dial: (events, signal) => dialWebTransport(where, events, signal),
    probeQuic: (signal) => probeQuic(where, signal),
  }
}
