/** Settings of retention: section `[retention]` of the configuration. */
import { autoSize, GIB, text, type ValuesOf } from '../setting.ts'
import { DISK_BUDGET_MIN_BYTES } from './core/disk-budget.ts'

export const RETENTION_SETTINGS = {
  schedule: text(
    '* * * * *',
    'When retention looks at ages and sizes, as a cron expression; it also looks whenever a segment is closed.',
  ),
  disk_budget: autoSize(
    { min: DISK_BUDGET_MIN_BYTES, max: 1024 * 1024 * GIB },
    'All files of the log together stay below it, but for one segment; auto is 80 % of the volume less the free-space floor.',
  ),
  free_space_floor: autoSize(
    { min: 0, max: 1024 * GIB },
    'Oldest messages are given up rather than leave less than this free on the volume; auto is 5 %, 16 MiB to 1 GiB.',
  ),
} as const

export type RetentionSettings = ValuesOf<typeof RETENTION_SETTINGS>
