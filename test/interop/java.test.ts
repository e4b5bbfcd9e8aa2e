/** Apache's Java client does its scenarios against a real edge. */
import { testClient } from './support/test-client.ts'
import { prepareJavaClient } from './toolchain/java.ts'

testClient('java', prepareJavaClient)
