import { type IndexEntry, SegmentIndex } from '../../src/log/core/segment-index.ts'

export function indexOf(entries: readonly IndexEntry[]): SegmentIndex {
  const index = new SegmentIndex()
  for (const entry of entries) index.push(entry)
  return index
}
