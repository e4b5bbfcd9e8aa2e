/**
 * Numbers of commands, operations and eviction reasons, and which belongs to which.
 *
 * Classic frames carry the command code alone. VSR frames carry an operation: what changes something has an operation of
 * its own, everything else rides as `nonReplicated` with the code beside it.
 */
import type { Dialect } from './dialect.ts'

export const CODE = {
  ping: 1,
  getStats: 10,
  getSnapshot: 11,
  getClusterMetadata: 12,
  describeOptions: 13,
  attachConsumerSession: 14,
  getMe: 20,
  getClient: 21,
  getClients: 22,
  getUser: 31,
  getUsers: 32,
  createUser: 33,
  deleteUser: 34,
  updateUser: 35,
  updatePermissions: 36,
  changePassword: 37,
  loginUser: 38,
  logoutUser: 39,
  /** Never on the wire: the operation `register` stands for it, for passwords and tokens alike (45). */
  loginRegister: 40,
  getPersonalAccessTokens: 41,
  createPersonalAccessToken: 42,
  deletePersonalAccessToken: 43,
  loginWithPersonalAccessToken: 44,
  pollMessages: 100,
  sendMessages: 101,
  flushUnsavedBuffer: 102,
  getPollRouting: 103,
  pollMessagesOnPrimary: 104,
  getConsumerOffset: 120,
  storeConsumerOffset: 121,
  deleteConsumerOffset: 122,
  getConsumerOffsetRouting: 123,
  getStream: 200,
  getStreams: 201,
  createStream: 202,
  deleteStream: 203,
  updateStream: 204,
  purgeStream: 205,
  getTopic: 300,
  getTopics: 301,
  createTopic: 302,
  deleteTopic: 303,
  updateTopic: 304,
  purgeTopic: 305,
  createPartitions: 402,
  deletePartitions: 403,
  deleteSegments: 503,
  getConsumerGroup: 600,
  getConsumerGroups: 601,
  createConsumerGroup: 602,
  deleteConsumerGroup: 603,
  joinConsumerGroup: 604,
  leaveConsumerGroup: 605,
  syncConsumerGroup: 606,
} as const

export type CommandCode = (typeof CODE)[keyof typeof CODE]

export const OPERATION = {
  register: 1,
  nonReplicated: 2,
  logout: 3,
  createStream: 128,
  updateStream: 129,
  deleteStream: 130,
  purgeStream: 131,
  createTopic: 132,
  updateTopic: 133,
  deleteTopic: 134,
  purgeTopic: 135,
  createPartitions: 136,
  deletePartitions: 137,
  deleteSegments: 138,
  createConsumerGroup: 139,
  deleteConsumerGroup: 140,
  createUser: 141,
  updateUser: 142,
  deleteUser: 143,
  changePassword: 144,
  updatePermissions: 145,
  createPersonalAccessToken: 146,
  deletePersonalAccessToken: 147,
  joinConsumerGroup: 148,
  leaveConsumerGroup: 149,
  sendMessages: 160,
  storeConsumerOffset: 161,
  deleteConsumerOffset: 162,
} as const

export type Operation = (typeof OPERATION)[keyof typeof OPERATION]

/** Operations that a committed reply carries instead of the request's. */
export const COMMITTED_OPERATION = {
  createTopicWithAssignments: 64,
  createPartitionsWithAssignments: 65,
  truncatePartition: 68,
} as const

/** Why a VSR session ends; the last byte of an eviction frame. */
export const EVICTION = {
  noSession: 1,
  clientReleaseTooLow: 2,
  clientReleaseTooHigh: 3,
  invalidRequestOperation: 4,
  invalidRequestBody: 5,
  invalidRequestBodySize: 6,
  sessionTooLow: 7,
  sessionReleaseMismatch: 8,
  invalidCredentials: 9,
  invalidToken: 10,
  userInactive: 11,
  sessionError: 12,
  staleClient: 13,
  incompatibleProtocol: 14,
  malformedLogin: 15,
} as const

export type EvictionReason = (typeof EVICTION)[keyof typeof EVICTION]

/** What an SDK makes of each reason: an Iggy error number. */
export const EVICTION_ERRORS: Readonly<Record<EvictionReason, number>> = {
  1: 40,
  2: 3,
  3: 3,
  4: 3,
  5: 3,
  6: 3,
  7: 40,
  8: 40,
  9: 42,
  10: 53,
  11: 40,
  12: 40,
  13: 30,
  14: 14003,
  15: 4,
}

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(CODE).map(([name, code]) => [code, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]),
)
const CLASSIC_ONLY: ReadonlySet<number> = new Set([CODE.loginUser, CODE.loginWithPersonalAccessToken])
const VSR_ONLY: ReadonlySet<number> = new Set([
  CODE.describeOptions,
  CODE.attachConsumerSession,
  CODE.loginRegister,
  CODE.getPollRouting,
  CODE.pollMessagesOnPrimary,
  CODE.getConsumerOffsetRouting,
  CODE.syncConsumerGroup,
])
const OPERATION_CODES: ReadonlyMap<number, CommandCode> = new Map([
  [OPERATION.register, CODE.loginRegister],
  [OPERATION.logout, CODE.logoutUser],
  ...Object.entries(OPERATION)
    .filter((entry): entry is [keyof typeof CODE & keyof typeof OPERATION, Operation] => entry[0] in CODE)
    .map(([name, operation]): [number, CommandCode] => [operation, CODE[name]]),
])
const CODE_OPERATIONS: ReadonlyMap<number, Operation> = new Map(
  [...OPERATION_CODES].map(([operation, code]) => [code, operation as Operation]),
)

/** @returns whether the dialect has a command of that code. */
export function isCommandCode(dialect: Dialect, code: number): code is CommandCode {
  return NAMES.has(code) && !(dialect === 'classic' ? VSR_ONLY : CLASSIC_ONLY).has(code)
}

/** @returns the command's name as Iggy spells it ("create_topic"), or "unknown_<code>". */
export function commandName(code: number): string {
  return NAMES.get(code) ?? `unknown_${code}`
}

/** @returns the operation that carries a code, `nonReplicated` for all that have none of their own. */
export function operationOf(code: number): Operation {
  return CODE_OPERATIONS.get(code) ?? OPERATION.nonReplicated
}

/** @returns the command code an operation stands for; undefined for `nonReplicated` and for unknown operations. */
export function codeOfOperation(operation: number): CommandCode | undefined {
  return OPERATION_CODES.get(operation)
}

/** @returns whether a client may send the operation. */
export function isClientOperation(operation: number): operation is Operation {
  return operation === OPERATION.nonReplicated || OPERATION_CODES.has(operation)
}

/** @returns the operation a successful or rejected committed reply carries: three are replaced, as Iggy's server does. */
export function replyOperationOf(operation: number): number {
  switch (operation) {
    case OPERATION.createTopic:
      return COMMITTED_OPERATION.createTopicWithAssignments
    case OPERATION.createPartitions:
      return COMMITTED_OPERATION.createPartitionsWithAssignments
    case OPERATION.deleteSegments:
      return COMMITTED_OPERATION.truncatePartition
    default:
      return operation
  }
}

/** @returns whether bodies of replies with that operation begin with a result section. */
export function hasResultSection(operation: number): boolean {
  if (operation === OPERATION.register) return true
  if (operation >= 64 && operation <= 68) return true
  if (operation >= OPERATION.createStream && operation <= OPERATION.leaveConsumerGroup) {
    return operation !== OPERATION.deleteSegments
  }
  return operation === OPERATION.storeConsumerOffset || operation === OPERATION.deleteConsumerOffset
}
