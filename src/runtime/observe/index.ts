/** Watching the runtime: metrics, health and what the inspection page shows. */
export { collectMetrics, type MetricSources } from './collect-metrics.ts'
export { ConnectionReports, type ListenerOccupancy } from './connection-reports.ts'
export { type Check, type Health, HealthWatch, type PartReport } from './health.ts'
export { type HealthMonitor, type HealthSources, type ListenerReport, startHealth } from './health-monitor.ts'
export { formatMetrics, METRICS, type Sample } from './metrics.ts'
export {
  type ListenerStatus,
  type OverviewSources,
  type SyncLags,
  type SyncRouteStatus,
  topicPath,
  type VisibleTopic,
  viewHealth,
  viewOverview,
} from './overview.ts'
export { reportCertificate, reportClock, reportFolders, reportLog, reportRoute, reportSpace } from './part-reports.ts'
export { type ReadingView, viewReading } from './reading-view.ts'
