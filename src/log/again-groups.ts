/**
 * What a start found in the journal and nothing proves: it is copied out of its file and written again, as one
 * group, before it is shown.
 */

import { createArea } from './core/byte-area.ts'
import { GROUP_HEADER_SIZE } from './core/journal-format.ts'
import type { BatchFields, BatchOwner } from './core/pending-batch.ts'
import { PendingBatch } from './core/pending-batch.ts'
import { GroupBuilder, mergedGroup } from './io/group-buffer.ts'
import type { FoundBatch } from './io/journal-recovery.ts'

export class AgainGroups {
  readonly #isInParts: boolean
  readonly #groups = new Map<number, GroupBuilder>()

  /** @param isInParts rule left out by a test. */
  constructor(isInParts: boolean) {
    this.#isInParts = isInParts
  }

  add(found: FoundBatch, owner: BatchOwner): void {
    const { header } = found
    const fields: BatchFields = header
    const batch = new PendingBatch(owner, fields, header.baseOffset + BigInt(header.count), null)
    batch.at = found.position
    batch.size = found.size
    this.#groupOf(found).addCopy(batch, found.area.bytes)
  }

  groups(): readonly GroupBuilder[] {
    const groups = [...this.#groups.values()]
    if (groups.length === 0 || this.#isInParts) return groups
    return [mergedGroup(groups)]
  }

  #groupOf({ sequence, boot, groupLength }: FoundBatch): GroupBuilder {
    const group = this.#groups.get(sequence) ?? new GroupBuilder(createArea(groupLength + GROUP_HEADER_SIZE), 0, boot)
    this.#groups.set(sequence, group)
    return group
  }
}
