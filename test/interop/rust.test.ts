/** Apache's Rust client, 0.10.0 (classic) and 0.11.0 (VSR), does its scenarios against a real edge. */
import { testClient } from './support/test-client.ts'
import { prepareRustClient } from './toolchain/rust.ts'

testClient('rust', prepareRustClient)
