/** States of the forwarder of a partition, and what is true of some of them. */
export type ForwarderState =
  | 'offline' // the link is down; it says why
  | 'resolving' // makes sure that stream, topic and partition are there
  | 'in-doubt' // reads the upstream's tail
  | 'settling' // waits before it looks again for a send whose answer was lost
  | 'reading' // waits for a free slot and reads the local log
  | 'paused' // a batch waits for the budget of the link, or for its turn on it
  | 'sending' // one batch is on its way
  | 'caught-up' // everything durable is upstream
  | 'waiting' // pauses after an error
  | 'blocked' // named trouble that only an operator ends; tried again slowly
  | 'quarantining' // a refused record is on its way to the dead letters

/** It holds, or waits for, one of the link's slots for a batch. */
export const NEEDING_SLOT: ReadonlySet<ForwarderState> = new Set(['reading', 'paused', 'sending', 'quarantining'])
/** States that read the upstream's tail before anything is sent, whatever they are told. */
export const LOOKS_BY_ITSELF: ReadonlySet<ForwarderState> = new Set([
  'offline',
  'resolving',
  'waiting',
  'quarantining',
  'blocked',
])
