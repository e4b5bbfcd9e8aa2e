/** What an operator can do about a finding, by the beginning of its event's name. Pure. */
import type { LogFinding } from '../../log/index.ts'

/** The first entry whose key begins the event wins, so the longer ones stand first. */
const ADVICE: readonly (readonly [prefix: string, advice: string])[] = [
  [
    'log.hole',
    'The named offsets are lost here; all others read on. If the upstream has them, nothing is lost overall. Check the disk.',
  ],
  [
    'log.batch.corrupt',
    'The named offsets are set aside. Check the disk and its cable; replace it when this comes again.',
  ],
  ['log.sync', 'The disk refused a write. Look at dmesg and free space; replace the disk when this comes again.'],
  ['log.append', 'The disk refused a write. Look at dmesg and free space; replace the disk when this comes again.'],
  ['log.disk', 'Free space on the disk, or lower retention and the disk budget.'],
  [
    'log.overflow',
    'A topic was full. Raise its size, shorten its expiry, or see why its upstream does not take the data.',
  ],
  [
    'log.quarantine',
    'Unknown or damaged files were set aside in the data folder. Nothing needs them; look at them if you like.',
  ],
  ['log.trash', 'A folder could not be removed. Check the rights of the data folder.'],
  ['log.offset.clamped', 'A consumer was ahead of the log after a power cut; it goes on at the end of the log.'],
  ['log.cursor', 'A cursor was ahead of the log after a power cut; sync compares with the upstream and goes on.'],
  ['log.descriptor', 'A topic was rebuilt from its files. Check its name and its options.'],
  [
    'log.metadata',
    'Users, groups and offsets were rebuilt or could not be written. Check users, tokens and free space.',
  ],
]
const FALLBACK = {
  error: 'Keep the log of the service and the data folder, and look at the disk.',
  warn: 'Nothing has to be done; it was put right.',
} as const

export function findingAdvice({ event, level }: Pick<LogFinding, 'event' | 'level'>): string {
  return ADVICE.find(([prefix]) => event.startsWith(prefix))?.[1] ?? FALLBACK[level]
}
