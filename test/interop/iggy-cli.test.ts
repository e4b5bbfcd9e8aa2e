/** Apache's `iggy` command line, 0.13.0 (classic) and 0.14.0 (VSR), does its scenarios against a real edge. */
import { testClient } from './support/test-client.ts'
import { prepareIggyCli } from './toolchain/rust.ts'

testClient('iggy-cli', prepareIggyCli)
