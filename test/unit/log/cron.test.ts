import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import { checkSchedule, systemCron } from '../../../src/log/cron.ts'

test('what is no cron expression is an error of the configuration', async () => {
  const isConfigError = (error: unknown) => error instanceof EdgeError && error.code === 'EDGE_CONFIG_INVALID'
  for (const expression of ['', 'often', '61 * * * *']) {
    await assert.rejects(
      systemCron.schedule(expression, () => {}),
      isConfigError,
      expression,
    )
    await assert.rejects(checkSchedule(expression), isConfigError, expression)
  }
  await checkSchedule('*/5 * * * *')
})

test('a scheduled task runs until it is stopped', async () => {
  let stop = () => {}
  const ran = new Promise<void>((resolve) => {
    void systemCron.schedule('* * * * * *', resolve).then((given) => {
      stop = given
    })
  })
  const keepAlive = setTimeout(() => {}, 5000)
  await ran
  clearTimeout(keepAlive)
  stop()
})

test('every minute is a plain timer, until it is stopped', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] })
  let count = 0
  const stop = await systemCron.schedule('* * * * *', () => count++)
  context.mock.timers.tick(180_000)
  assert.equal(count, 3)
  stop()
  context.mock.timers.tick(180_000)
  assert.equal(count, 3)
})
