/** The client of Iggy and of iggy-edge: connect, send, poll, publish readings. Usage: `docs/sdk.md`. */
export { Backoff, type BackoffPolicy } from './client/retry.ts'
