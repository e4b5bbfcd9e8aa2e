/** What an operator can do about a finding, by the beginning of its event's name. Pure. */
import type { LogFinding } from '../../log/index.ts'

/**
 * The first entry whose key begins the event wins, so the longer ones stand first. A test holds that every event of the log
 * has an entry, and every entry an event.
 */
export const FINDING_ADVICE: readonly (readonly [prefix: string, advice: string])[] = [
  [
    'log.hole',
    'The named offsets are lost here; all others read on. If the upstream has them, nothing is lost overall. Check the disk.',
  ],
  [
    'log.folder.gone',
    'Move the data folder back, and all goes on. Where it was deleted, restart the service: it begins with an empty one, and what only the old one held is lost.',
  ],
  ['log.folder.back', 'Nothing has to be done now; see who moved it.'],
  ['log.sync', 'The disk refused a write. Look at dmesg and free space; replace the disk when this comes again.'],
  ['log.append.resumed', 'Nothing has to be done now; dmesg may tell why the disk refused before.'],
  ['log.append', 'The disk refused a write. Look at dmesg and free space; replace the disk when this comes again.'],
  ['log.reserve', 'Messages are stored all the same. See what stands in the place of that file, and its rights.'],
  ['log.repack', 'The disk refused a write. Look at dmesg and free space; replace the disk when this comes again.'],
  [
    'log.folder.refused',
    'Nothing is lost or refused. See the rights of that folder, whether it is immutable (lsattr), its quota, and whether it is a folder.',
  ],
  [
    'log.folder.unreadable',
    'See the rights of that folder or file, and dmesg; mend it and restart the service, which then has again what lies there.',
  ],
  ['log.folder.resumed', 'Nothing has to be done: what was kept elsewhere stays there until retention takes it.'],
  ['log.disk', 'Free space on the disk, or lower retention and the disk budget.'],
  [
    'log.topic.full',
    'Messages are refused or dropped until there is room: raise its size or the disk budget, shorten its expiry, or see why its upstream does not take the data.',
  ],
  ['log.topic.room', 'Nothing has to be done: it takes messages again.'],
  [
    'log.retention.unread_dropped',
    'The named messages are lost here. Raise the disk budget, or see why the consumer or the upstream does not read.',
  ],
  ['log.retention', 'Old messages cannot be dropped, tried again. Look at dmesg and the rights of the data folder.'],
  ['log.journal.stuck', 'The journal cannot be emptied for lack of room: free space, or lower retention.'],
  [
    'log.journal.damaged',
    'What cannot be read is lost here; all else reads on. If the upstream has it, nothing is lost overall. Check the disk.',
  ],
  [
    'log.segment.damaged',
    'The messages at the end are lost here; all else reads on. If the upstream has them, nothing is lost overall. Check the disk.',
  ],
  [
    'log.header.mended',
    'Nothing has to be done now. The disk gave back something else than was written to it: check it.',
  ],
  [
    'log.header',
    'All reads on but what the text says. The disk gave back something else than was written to it: check it.',
  ],
  [
    'log.journal',
    'A file of the data folder was deleted or overwritten. What it held is lost here; see who else writes there.',
  ],
  [
    'log.file.quarantined',
    'Unknown or damaged files were set aside in the data folder. Nothing needs them; look at them if you like.',
  ],
  ['log.file', 'A file cannot be read or moved. Check the rights of the data folder, and the disk.'],
  [
    'log.decrypt',
    'Give the key that was used then: log.encryption.previous_keys takes it. Else the range is lost here.',
  ],
  ['log.trash', 'A folder could not be removed. Check the rights of the data folder.'],
  ['log.offsets.clamped', 'A consumer was ahead of the log after a power cut; it goes on at the end of the log.'],
  ['log.offsets', 'Offsets of consumers may be older than they were: some messages come to them again.'],
  ['log.checkpoint', 'The next start takes longer; look at free space when this comes again.'],
  ['log.store', 'The identity of the store was made anew. Check the disk, and that topics and users are whole.'],
  ['log.recovery.deleted', 'Nothing has to be done: what was deleted stays deleted.'],
  ['log.recovery', 'Messages without a topic were kept in one that was made for them: read it, then delete it.'],
  [
    'log.descriptor.key_twice',
    'A topic was left out. If its folder is a copy, remove it; else keep the data folder and ask.',
  ],
  ['log.descriptor.restored', 'Nothing has to be done: the copy is whole. Check the disk when this comes again.'],
  ['log.descriptor', 'A topic was rebuilt from its files. Check its name and its options.'],
  [
    'log.metadata.missing',
    'Make users and tokens again. Consumers read from where they begin, and what upstreams have is seen there. See who deleted the file.',
  ],
  [
    'log.metadata',
    'Users, groups and offsets were rebuilt or could not be written. Check users, tokens and free space.',
  ],
]
const FALLBACK = {
  error: 'Keep the log of the service and the data folder, and look at the disk.',
  warn: 'Look at the log of the service; it goes on by itself.',
} as const

export function findingAdvice({ event, level }: Pick<LogFinding, 'event' | 'level'>): string {
  return FINDING_ADVICE.find(([prefix]) => event.startsWith(prefix))?.[1] ?? FALLBACK[level]
}
