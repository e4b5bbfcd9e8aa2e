/** Stored consumer offsets (protocol section 7.5). */
import { type Codec, nothing, onlyIn, orEmpty, struct, u8, u32, u64 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { consumer, identifier, optionalPartition } from '../primitives.ts'
import { command } from './command.ts'

/** 0 no ack, 1 quorum: one node answers both alike. */
export const ACK_QUORUM = 1

const ack: Codec<number> = onlyIn(
  'vsr',
  {
    read(reader) {
      const level = reader.u8()
      if (level > 1) throw reader.fail('EDGE_COMMAND_MALFORMED', 'ack 0 or 1', `${level}`)
      return level
    },
    write: (writer, level) => u8.write(writer, level, 'vsr'),
  },
  ACK_QUORUM,
)

/** The target that offset commands and their routing have in common. */
export const offsetTarget = struct({ consumer, stream: identifier, topic: identifier, partitionId: optionalPartition })

/** null: nothing is stored. */
export const getConsumerOffset = command(
  CODE.getConsumerOffset,
  offsetTarget,
  orEmpty(struct({ partitionId: u32, currentOffset: u64, storedOffset: u64 })),
)

export const storeConsumerOffset = command(
  CODE.storeConsumerOffset,
  struct({ consumer, stream: identifier, topic: identifier, partitionId: optionalPartition, offset: u64, ack }),
  nothing,
)

export const deleteConsumerOffset = command(
  CODE.deleteConsumerOffset,
  struct({ consumer, stream: identifier, topic: identifier, partitionId: optionalPartition, ack }),
  nothing,
)
