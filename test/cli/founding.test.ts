import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { describeInPlaces, initialize } from '../platform/support.ts'
import { runCli, type CliResult } from './run-cli.ts'

describeInPlaces('mem platform init', (place) => {
  /** In a terminal: a password that is asked for is seen on standard error. */
  const ask = (...argv: string[]): Promise<CliResult> =>
    runCli(['platform', ...argv], { env: { HOME: place().directory, NO_COLOR: '1', ...place().env }, isTTY: true })

  test('what is wrong is told before a password is asked for', async () => {
    const names = ['--organization', 'Acme', '--email']
    expect(await ask('init', ...names, 'ada')).toEqual({
      code: 4,
      stdout: '',
      stderr: 'error: email must be an e-mail address\n',
    })
    expect(existsSync(place().config().platform.key_file)).toBe(false)
    await initialize(place())
    const again = { code: 4, stdout: '', stderr: expect.stringMatching(/^error: .*already\n.*orgs add/) }
    expect(await ask('init', ...names, 'ada@example.org')).toEqual(again)
    expect(await ask('orgs', 'add', 'Sirius', '--email', 'ada')).toMatchObject({
      code: 4,
      stderr: 'error: email must be an e-mail address\n',
    })
  })
})
