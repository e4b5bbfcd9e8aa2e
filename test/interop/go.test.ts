/** Apache's Go client does its scenarios against a real edge. */
import { testClient } from './support/test-client.ts'
import { prepareGoClient } from './toolchain/go.ts'

testClient('go', prepareGoClient)
