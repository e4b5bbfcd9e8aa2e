/** The device protocol at the edge: serves path `/edge`. */
export type { LossReason } from './core/exchange.ts'
export { DEVICE_DEFAULTS } from './defaults.ts'
export { type DeviceHub, type DeviceHubOptions, type DeviceTraffic, startDeviceHub } from './device-hub.ts'
export { type DevicePolicy, formatDevicePolicy, parseDevicePolicy } from './device-policy.ts'
export { createEdgeDeviceBroker, type EdgeDeviceBroker } from './edge-device-broker.ts'
export type {
  DeviceBroker,
  DeviceGrant,
  DeviceRead,
  DeviceSource,
  DeviceTarget,
  DownMessage,
  EdgeTime,
} from './ports.ts'
