/** What a person at the terminal can do about an error, by its code. Pure. */
import type { EdgeError, ErrorCode } from '../../errors.ts'
import { isUsageError } from './grammar.ts'

const HINTS: Partial<Readonly<Record<ErrorCode, string>>> = {
  EDGE_UPSTREAM_UNREACHABLE: 'is the server running there? Name it with --url (or IGGY_URL), HTTP with --http-url',
  EDGE_CONNECTION_LOST: 'does the server want TLS (--tcp-tls-enabled), or has it all the connections it may have?',
  EDGE_UPSTREAM_TIMEOUT: 'is the address right, and does a firewall let it through?',
  EDGE_UNAUTHENTICATED: 'give --username and --password, --token, or IGGY_USERNAME and IGGY_PASSWORD',
  EDGE_CREDENTIALS_INVALID: 'check user and password',
  EDGE_TOKEN_INVALID: 'check the token; iggy-edge token create makes a new one',
  EDGE_TOKEN_EXPIRED: 'iggy-edge token create makes a new one',
  EDGE_USER_INACTIVE: 'iggy-edge user status USER active lets the user in again',
  EDGE_FORBIDDEN: 'a user with manage_users can give this right: iggy-edge user permissions',
  EDGE_STREAM_NOT_FOUND: 'iggy-edge stream list shows what there is',
  EDGE_TOPIC_NOT_FOUND: 'iggy-edge topic list STREAM shows what there is',
  EDGE_PARTITION_NOT_FOUND: 'iggy-edge topic get STREAM TOPIC shows what there is',
  EDGE_PARTITION_COUNT_INVALID: 'iggy-edge topic get STREAM TOPIC shows how many there are',
  EDGE_OFFSET_INVALID: 'iggy-edge topic get STREAM TOPIC shows how many messages there are',
  EDGE_GROUP_NOT_FOUND: 'iggy-edge consumer-group list STREAM TOPIC shows what there is',
  EDGE_USER_NOT_FOUND: 'iggy-edge user list shows what there is',
  EDGE_CLIENT_NOT_FOUND: 'iggy-edge client list shows what there is',
  EDGE_DEVICE_NOT_FOUND: 'iggy-edge device list shows what there is',
  EDGE_STREAM_NAME_TAKEN: 'choose another name',
  EDGE_TOPIC_NAME_TAKEN: 'choose another name',
  EDGE_GROUP_NAME_TAKEN: 'choose another name',
  EDGE_USER_NAME_TAKEN: 'choose another name',
  EDGE_TOKEN_NAME_TAKEN: 'choose another name',
  EDGE_TOKEN_NAME_INVALID: 'a name has 3 to 30 bytes',
  EDGE_USERNAME_INVALID: 'a name has 3 to 50 bytes',
  EDGE_PASSWORD_INVALID: 'a password has 3 to 100 bytes',
  EDGE_OPTION_UNKNOWN: 'iggy-edge options topic lists all',
  EDGE_OPTION_INVALID: 'iggy-edge options topic says which values each option takes',
  EDGE_TOPIC_SIZE_INVALID: 'a topic holds at least one segment: see segment_size in iggy-edge options topic',
  EDGE_ROOT_PROTECTED:
    'the first user stays, active and with its name and rights; iggy-edge user password changes its password',
  EDGE_FEATURE_UNAVAILABLE: 'the server has no such command, or not any more',
  EDGE_ADDRESS_IN_USE: 'end the other process, or choose another address in the configuration',
  EDGE_STORE_IN_USE: 'stop the service first, or ask it: iggy-edge status',
  EDGE_STORE_MISSING: 'check that the disk is mounted, or name the folder with --data',
  EDGE_STORE_NEWER: 'nothing was changed',
  EDGE_TOPIC_FULL: 'raise its size (topic update --max-size) or let old messages expire',
  EDGE_BACKPRESSURE: 'the server is busy: try again',
  EDGE_APPEND_FAILED: 'its disk refuses or has no room for it: iggy-edge status tells why',
  EDGE_DISK_FULL: 'free space, or lower retention and the disk budget',
}

/** Some commands answer this for whatever is not there: a user, a token, or a stream, topic or partition alike. */
const RESOURCE_NOT_FOUND = 20
const TOKEN_COMMAND = /personal_access_token/
const USER_COMMAND = /user|password|permissions/
const NO_TOKEN_HINT = 'iggy-edge token list shows what there is'
const NOT_FOUND_HINT =
  'iggy-edge stream list, iggy-edge topic list STREAM and topic get STREAM TOPIC show what there is'

/** Of a data folder, and of a configuration that only root may read. */
const FILE_CODES: ReadonlySet<ErrorCode> = new Set(['EDGE_IO', 'EDGE_CONFIG_INVALID'])
const NO_RIGHT_HINT = 'run it as root or as the user of the service, or give it rights there'

/** By the system's code, where the socket of a listener was refused. */
const LISTEN_HINTS: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'no interface of this machine has the address now: 0.0.0.0 stands for all of them',
  EACCES: 'ports below 1024 are for root, or for who has CAP_NET_BIND_SERVICE',
}

/** Node's codes of certificates that it does not take: the server is there. */
const TRUST_CODES: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
const TRUST_HINT =
  'a file with the certificates to trust is named with --tcp-tls-ca-file, for HTTP in the environment as NODE_EXTRA_CA_CERTS'
/** How deep a foreign error may lie in ours. */
const MAX_CAUSES = 4

/** One line for a person; nothing is added where the words themselves were wrong and say what was expected. */
export function formatError(error: EdgeError): string {
  const hint = hintOf(error)
  return hint === undefined || isUsageError(error) ? error.message : `${error.message}; ${hint}`
}

function hintOf({ code, details, cause }: EdgeError): string | undefined {
  if (details.iggyCode === RESOURCE_NOT_FOUND) return notFoundHintOf(String(details.asked))
  if (FILE_CODES.has(code) && (details.code === 'EACCES' || details.code === 'EPERM')) return NO_RIGHT_HINT
  if (isDistrust(cause)) return TRUST_HINT
  // Said by a server, it is about a command of the protocol; else the message says what is missing.
  if (code === 'EDGE_FEATURE_UNAVAILABLE' && details.iggyCode === undefined) return undefined
  return listenHintOf(cause) ?? HINTS[code]
}

function notFoundHintOf(command: string): string | undefined {
  if (TOKEN_COMMAND.test(command)) return NO_TOKEN_HINT
  return USER_COMMAND.test(command) ? HINTS.EDGE_USER_NOT_FOUND : NOT_FOUND_HINT
}

function isDistrust(cause: unknown): boolean {
  let error = cause
  for (let depth = 0; depth < MAX_CAUSES && error instanceof Error; depth++) {
    if ('code' in error && TRUST_CODES.has(String(error.code))) return true
    error = error.cause
  }
  return false
}

function listenHintOf(cause: unknown): string | undefined {
  if (!(cause instanceof Error && 'syscall' in cause && cause.syscall === 'listen' && 'code' in cause)) return undefined
  return LISTEN_HINTS[String(cause.code)]
}
