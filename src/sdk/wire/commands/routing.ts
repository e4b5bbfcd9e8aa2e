/** Routing in a cluster (protocol section 5.10, VSR only): a single node answers with itself, though clients do not ask. */
import { nothing, struct, u64, u128 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { nodeRecord } from '../records.ts'
import { command } from './command.ts'
import { pollRequest, pollResponse } from './messages.ts'
import { offsetTarget } from './offsets.ts'

const session = { clientId: u128, session: u64, metadataWatermark: u64 }
const route = struct({ ...session, node: nodeRecord })

export const attachConsumerSession = command(CODE.attachConsumerSession, struct(session), nothing)
export const getPollRouting = command(CODE.getPollRouting, pollRequest, route)
export const getConsumerOffsetRouting = command(CODE.getConsumerOffsetRouting, offsetTarget, route)
export const pollMessagesOnPrimary = command(CODE.pollMessagesOnPrimary, pollRequest, pollResponse)
