/** The reference of metrics as Markdown, from their table. Pure. */
import { METRICS, type Metric } from './metrics.ts'

const HEAD = `# Metrics

Generated from \`src/runtime/observe/metrics.ts\` by \`node scripts/docs.ts\`; do not edit.

\`GET /metrics\` answers them in the text form of Prometheus, as OpenMetrics when asked for ([HTTP](protocol/http.md)). Names without
\`edge_\` are those of Iggy's server. Counters begin at 0 with the process, where nothing else is said; \`check\` and \`route\` are named as \`iggy-edge status\` does.

| metric | labels | |
| --- | --- | --- |`

/** @returns the text of `docs/metrics.md`. */
export function formatMetricReference(): string {
  const rows = Object.values<Metric>(METRICS).map(({ name, type, labels, help }) => {
    const sample = type === 'counter' ? `${name}_total` : name
    return `| \`${sample}\` | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`
  })
  return `${[HEAD, ...rows].join('\n')}\n`
}
