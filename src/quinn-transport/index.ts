/**
 * WebTransport for both sides: the package, a QUIC transport under it, streams as callbacks. Used by `quic-edge` to
 * listen and by `sdk` to dial; knows bytes only.
 */
export { type AddonLoader, useAddonLoader } from './addon.ts'
export { ByteStream, type ByteStreamEvents, type ReadCredit } from './byte-stream.ts'
export { type LoadedWebTransport, loadWebTransport, type TransportName } from './package.ts'
export type {
  PackageClientSession,
  PackageDecision,
  PackageHeaders,
  PackageServer,
  PackageServerSession,
  PackageSession,
  PackageStream,
} from './package-api.ts'
