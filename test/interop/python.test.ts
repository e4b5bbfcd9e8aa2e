/** Apache's Python client, 0.8.0 (classic) and 0.9.0 (VSR), does its scenarios against a real edge. */
import { testClient } from './support/test-client.ts'
import { preparePythonClient } from './toolchain/python.ts'

testClient('python', preparePythonClient)
