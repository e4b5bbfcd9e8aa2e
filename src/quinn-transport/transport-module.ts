/**
 * Stands where @fails-components/webtransport imports its transport package: exports what it looks for there.
 * `package.ts` leads the import here, the bundler does so by an alias.
 */
export { Http3WebTransportClient, Http3WebTransportClientSocket } from './adapter-client.ts'
export { Http3WebTransportServer, Http3WebTransportServerSocket } from './adapter-server.ts'

/** The package asks its transport whether it is ready; ours loads its addon on first use. */
export function checkQuicheInit(): void {}
