import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConnectionCount } from '../../../../src/runtime/connection-count.ts'
import { ConnectionReports } from '../../../../src/runtime/observe/connection-reports.ts'
import { HealthWatch } from '../../../../src/runtime/observe/health.ts'

test('a listener is degraded while it is full, and once more when it turned somebody away since it was looked at', () => {
  const count = new ConnectionCount(2)
  const reports = new ConnectionReports()
  const watch = new HealthWatch()
  const look = () => {
    const { openConnections, maxConnections, refusedConnections } = count
    const report = reports.report({ name: 'tcp', openConnections, maxConnections, refusedConnections })
    return watch.observe([report], 0)
  }
  assert.equal(count.enter(), true)
  assert.equal(look().status, 'ready')
  assert.equal(count.enter(), true)
  assert.equal(look().status, 'degraded')
  assert.equal(count.enter(), false)
  count.left()
  const [check] = look().checks
  assert.equal(check?.state, 'failed')
  assert.equal(check.cause, '1 of 2 connections are open, 1 was turned away since the start')
  assert.match(check.action, /raise tcp\.max_connections\.$/)
  assert.equal(look().status, 'ready')
})
