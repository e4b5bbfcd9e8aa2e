/** Streams (protocol section 7.4). */
import { listToEnd, name, nothing, onlyIn, orEmpty, struct } from '../codec.ts'
import { CODE } from '../codes.ts'
import { NO_OPTIONS, optionsToEnd } from '../options.ts'
import { identifier } from '../primitives.ts'
import { streamDetails, streamRecord } from '../records.ts'
import { command } from './command.ts'

const options = onlyIn('vsr', optionsToEnd, NO_OPTIONS)

export const getStream = command(CODE.getStream, struct({ stream: identifier }), orEmpty(streamDetails))
export const getStreams = command(CODE.getStreams, nothing, struct({ streams: listToEnd(streamRecord) }))
export const createStream = command(CODE.createStream, struct({ name, options }), streamRecord)
export const deleteStream = command(CODE.deleteStream, struct({ stream: identifier }), nothing)
export const updateStream = command(CODE.updateStream, struct({ stream: identifier, name, options }), nothing)
export const purgeStream = command(CODE.purgeStream, struct({ stream: identifier }), nothing)
