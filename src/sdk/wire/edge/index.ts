/** The device protocol's codec: frames of `docs/protocol/edge.md` as objects and bytes. Pure; runs in a browser. */
export { EdgeFrameAssembler } from './assembler.ts'
export {
  aboutFrame,
  beginsWith,
  decodeFrame,
  encodeBareFrame,
  encodeFrame,
  encodeItem,
  type IgnorableFrame,
} from './codec.ts'
export {
  EDGE_CODES,
  type EdgeCodeName,
  edgeCodeOf,
  type FrameFault,
  faultOf,
  frameFault,
  traitsOfCode,
} from './error-codes.ts'
export type {
  AckedRun,
  Auth,
  FieldNumber,
  FieldSpec,
  LaneSequence,
  PartitionChoice,
  SourcedTime,
  StartFrom,
  Value,
  WallTime,
  When,
} from './fields.ts'
export { FRAMES, type Frame, type FrameType } from './frames.ts'
export { encodeHead, readHead } from './head.ts'
export * from './limits.ts'
export { scan } from './scan.ts'
