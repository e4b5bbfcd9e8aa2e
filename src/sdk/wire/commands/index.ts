/**
 * All commands in one table, and the four ways through it. The types of requests and responses follow from the table, so
 * that a dispatcher switches on `request.code` and has the right `request.body` in each case.
 */
import { EdgeError } from '../../../errors.ts'
import type { Codec } from '../codec.ts'
import { CODE, type CommandCode, commandName, isCommandCode } from '../codes.ts'
import type { Dialect } from '../dialect.ts'
import { Reader } from '../reader.ts'
import type { Writer } from '../writer.ts'
import type { Command } from './command.ts'
import * as groups from './groups.ts'
import * as messages from './messages.ts'
import * as offsets from './offsets.ts'
import * as routing from './routing.ts'
import * as streams from './streams.ts'
import * as system from './system.ts'
import * as tokens from './tokens.ts'
import * as topics from './topics.ts'
import * as users from './users.ts'

export const COMMANDS = {
  [CODE.ping]: system.ping,
  [CODE.getStats]: system.getStats,
  [CODE.getSnapshot]: system.getSnapshot,
  [CODE.getClusterMetadata]: system.getClusterMetadata,
  [CODE.describeOptions]: system.describeOptions,
  [CODE.attachConsumerSession]: routing.attachConsumerSession,
  [CODE.getMe]: system.getMe,
  [CODE.getClient]: system.getClient,
  [CODE.getClients]: system.getClients,
  [CODE.getUser]: users.getUser,
  [CODE.getUsers]: users.getUsers,
  [CODE.createUser]: users.createUser,
  [CODE.deleteUser]: users.deleteUser,
  [CODE.updateUser]: users.updateUser,
  [CODE.updatePermissions]: users.updatePermissions,
  [CODE.changePassword]: users.changePassword,
  [CODE.loginUser]: users.loginUser,
  [CODE.logoutUser]: users.logoutUser,
  [CODE.loginRegister]: users.loginRegister,
  [CODE.getPersonalAccessTokens]: tokens.getPersonalAccessTokens,
  [CODE.createPersonalAccessToken]: tokens.createPersonalAccessToken,
  [CODE.deletePersonalAccessToken]: tokens.deletePersonalAccessToken,
  [CODE.loginWithPersonalAccessToken]: tokens.loginWithPersonalAccessToken,
  [CODE.pollMessages]: messages.pollMessages,
  [CODE.sendMessages]: messages.sendMessages,
  [CODE.flushUnsavedBuffer]: messages.flushUnsavedBuffer,
  [CODE.getPollRouting]: routing.getPollRouting,
  [CODE.pollMessagesOnPrimary]: routing.pollMessagesOnPrimary,
  [CODE.getConsumerOffset]: offsets.getConsumerOffset,
  [CODE.storeConsumerOffset]: offsets.storeConsumerOffset,
  [CODE.deleteConsumerOffset]: offsets.deleteConsumerOffset,
  [CODE.getConsumerOffsetRouting]: routing.getConsumerOffsetRouting,
  [CODE.getStream]: streams.getStream,
  [CODE.getStreams]: streams.getStreams,
  [CODE.createStream]: streams.createStream,
  [CODE.deleteStream]: streams.deleteStream,
  [CODE.updateStream]: streams.updateStream,
  [CODE.purgeStream]: streams.purgeStream,
  [CODE.getTopic]: topics.getTopic,
  [CODE.getTopics]: topics.getTopics,
  [CODE.createTopic]: topics.createTopic,
  [CODE.deleteTopic]: topics.deleteTopic,
  [CODE.updateTopic]: topics.updateTopic,
  [CODE.purgeTopic]: topics.purgeTopic,
  [CODE.createPartitions]: topics.createPartitions,
  [CODE.deletePartitions]: topics.deletePartitions,
  [CODE.deleteSegments]: topics.deleteSegments,
  [CODE.getConsumerGroup]: groups.getConsumerGroup,
  [CODE.getConsumerGroups]: groups.getConsumerGroups,
  [CODE.createConsumerGroup]: groups.createConsumerGroup,
  [CODE.deleteConsumerGroup]: groups.deleteConsumerGroup,
  [CODE.joinConsumerGroup]: groups.joinConsumerGroup,
  [CODE.leaveConsumerGroup]: groups.leaveConsumerGroup,
  [CODE.syncConsumerGroup]: groups.syncConsumerGroup,
} as const satisfies { readonly [C in CommandCode]: Command<C, unknown, unknown> }

export type RequestBody<C extends CommandCode> = (typeof COMMANDS)[C] extends Command<C, infer R, infer _> ? R : never
export type ResponseBody<C extends CommandCode> = (typeof COMMANDS)[C] extends Command<C, infer _, infer R> ? R : never

/** A request of any command: `code` tells the type of `body`. */
export type Request = { readonly [C in CommandCode]: { readonly code: C; readonly body: RequestBody<C> } }[CommandCode]

/** What is being read, for errors: made once, because every decoder names it. */
const REQUEST_SUBJECTS = subjectsOf('request')
const RESPONSE_SUBJECTS = subjectsOf('response')

function subjectsOf(what: string): ReadonlyMap<CommandCode, string> {
  return new Map(Object.values(CODE).map((code) => [code, `${commandName(code)} ${what}`]))
}

/**
 * Decodes the payload of a request. Bytes after it are tolerated: some SDKs append a few.
 *
 * @param payloadView what follows the frame's head; bytes in the result alias it, see `SendMessagesRequest` for messages.
 * @throws EDGE_COMMAND_UNKNOWN for a code the dialect does not have, EDGE_COMMAND_MALFORMED, EDGE_FORMAT_INVALID, and
 *   what sends throw.
 */
export function decodeCommand(dialect: Dialect, code: number, payloadView: Uint8Array): Request {
  if (!isCommandCode(dialect, code)) {
    throw new EdgeError('EDGE_COMMAND_UNKNOWN', `command: expected a code of the ${dialect} dialect, found ${code}`)
  }
  const codec: Codec<unknown> = COMMANDS[code].request
  const body = codec.read(new Reader(payloadView, REQUEST_SUBJECTS.get(code) ?? ''), dialect)
  return { code, body } as Request
}

/**
 * Appends the payload of a request.
 *
 * @throws EDGE_NAME_INVALID, EDGE_IDENTIFIER_INVALID, EDGE_KEY_LENGTH_INVALID, EDGE_FORMAT_INVALID for a number that does not
 *   fit its field, and what sends throw.
 */
export function encodeCommand(dialect: Dialect, request: Request, writer: Writer): void {
  const codec: Codec<unknown> = COMMANDS[request.code].request
  codec.write(writer, request.body, dialect)
}

/** Decodes the payload of a successful reply (VSR: what follows the result section). @throws as `decodeCommand`. */
export function decodeResponse<C extends CommandCode>(
  dialect: Dialect,
  code: C,
  payloadView: Uint8Array,
): ResponseBody<C> {
  const codec: Codec<unknown> = COMMANDS[code].response
  return codec.read(new Reader(payloadView, RESPONSE_SUBJECTS.get(code) ?? ''), dialect) as ResponseBody<C>
}

/** Appends the payload of a successful reply (VSR: what follows the result section). */
export function encodeResponse<C extends CommandCode>(
  dialect: Dialect,
  code: C,
  body: ResponseBody<C>,
  writer: Writer,
): void {
  const codec: Codec<unknown> = COMMANDS[code].response
  codec.write(writer, body, dialect)
}
