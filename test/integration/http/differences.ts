/**
 * Steps of the recordings that we answer otherwise than both servers, on purpose. A step that is listed must really
 * differ, with the status and number given here; one that is not listed must not.
 */

export interface Difference {
  readonly steps: readonly number[]
  readonly why: string
  /** What we answer. */
  readonly status: number
  /** Number of the error in our answer. */
  readonly id?: number
}

/** Brings the state to the recorded one after a step, so that later steps see the ids they expect. */
export interface Repair {
  readonly step: number
  /** For one recording only: there the servers went apart, and we followed the other one. */
  readonly recording?: '0.8.0' | '0.9.0-edge.5'
  readonly request: { readonly method: string; readonly path: string; readonly body?: string }
}

const DEFAULTS = 'guides leave out or set to null what has a default: the topic is made'

export const DIFFERENCES: readonly Difference[] = [
  { steps: [6, 564], why: 'callers on this machine may read statistics without a token', status: 200 },
  { steps: [40], why: 'Basic is our own extension, for the calls that guides show', status: 200 },
  { steps: [121, 122, 128, 129, 130, 131, 561], why: DEFAULTS, status: 200 },
  {
    steps: [400],
    why: 'sizes are counted as 0.8 does, 64 bytes a message; one message more was recorded there',
    status: 200,
  },
  {
    steps: [363],
    why: 'a missing partition is named by its own number, as in a poll; recorded is the general 404',
    status: 404,
    id: 3007,
  },
  {
    steps: [402, 406],
    why: 'an offset once given is never given again: after a purge the numbering goes on',
    status: 200,
  },
  { steps: [405], why: 'as above', status: 201 },
  {
    steps: [459, 460, 463],
    why: 'who may not list streams is not told which names exist',
    status: 403,
    id: 41,
  },
  {
    steps: [522, 526],
    why: "the token of a deleted user is nobody's: 401 makes clients log in again, 403 makes them try for ever",
    status: 401,
    id: 40,
  },
  { steps: [539], why: 'our catalogue of topic options', status: 200 },
  {
    steps: [552, 553, 555],
    why: 'a logout ends the token, as in 0.8, and says so as the newest server does',
    status: 401,
    id: 40,
  },
  { steps: [562], why: 'message_key is an alias of messages_key, and a null id is none', status: 201 },
  { steps: [563], why: 'strategy is an alias of kind, and a group that is missing is made', status: 200 },
]

/**
 * Steps that are not sent: we take them where the servers refuse, and what they leave behind would shift the offsets and
 * ids of everything after. `guide-calls.test.ts` shows what we answer.
 */
export const SKIPPED: ReadonlyMap<number, string> = new Map([
  [239, 'a null message id is none: a message would be stored'],
  [279, 'message_key is taken: a message would be stored'],
  [337, 'the group would be made'],
  [556, 'Basic is taken: the stream would be made'],
  [557, 'as 556, for the topic'],
  [558, 'as 556, for a message'],
  [559, 'as 556, for the group'],
])

/** Not sent to a log on a disk, for its journal has a largest batch; `400` counts what `307` left. */
export const SKIPPED_ON_DISK: ReadonlyMap<number, string> = new Map([
  [307, 'a message of 1.5 MB'],
  [400, 'counts the message of 307'],
])

const removeTopic = (step: number, name: string): Repair => ({
  step,
  request: { method: 'DELETE', path: `/streams/s1/topics/${name}` },
})
const makeTopic = (step: number, name: string): Repair => ({
  step,
  recording: '0.8.0',
  request: { method: 'POST', path: '/streams/s1/topics', body: `{"name":"${name}","partitions_count":1}` },
})

export const REPAIRS: readonly Repair[] = [
  removeTopic(121, 't9'),
  removeTopic(122, 't10'),
  removeTopic(128, 't16'),
  removeTopic(129, 't17'),
  removeTopic(130, 't18'),
  removeTopic(131, 't19'),
  // 0.8 refuses a replication factor of 0, and knows no options it could refuse.
  { ...removeTopic(137, 't25'), recording: '0.8.0' },
  makeTopic(143, 't31'),
  makeTopic(144, 't32'),
  makeTopic(145, 't33'),
]
