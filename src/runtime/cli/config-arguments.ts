/** Options of every command that reads the configuration. */
import type { Argument } from './grammar.ts'

export const CONFIG_ARGUMENTS: readonly Argument[] = [
  {
    name: 'config',
    aliases: ['c'],
    summary:
      "Configuration file (TOML); else the file of Apache's server in IGGY_CONFIG_PATH, else /etc/iggy-edge/edge.toml.",
  },
  { name: 'data', summary: 'Data folder, instead of system.path.' },
  { name: 'dev', isFlag: true, summary: 'For development: root is iggy/iggy, everything listens on loopback only.' },
]
