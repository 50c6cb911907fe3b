import { describe, expect, test } from 'vitest'
import { useKernel, mem, client, json, approvalAsked } from './kernel-support.ts'

useKernel()

describe('mem approvals', () => {
  test('list and show say what would be done', async () => {
    const id = await approvalAsked()
    expect((await mem(['approvals', 'list'])).stdout).toContain(`${id}  pending  external`)
    const { stdout } = await mem(['approvals', 'show', id])
    for (const line of [
      'action  mail@1.0.0 send',
      'arguments  {"to":"pia@example.org"}',
      'risk  external, side effect external',
      'to  mail.example.org',
      'approvers  user:local',
      'why asked  it leaves the house',
    ]) {
      expect(stdout).toContain(`${line}\n`)
    }
  })

  test('decide shows it, and asks on a terminal', async () => {
    const id = await approvalAsked()
    const refused = await mem(['approvals', 'decide', id, 'approve'], { isTTY: true, stdin: 'n\n' })
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(refused.stderr).toContain('pia@example.org')
    expect(refused.stderr).toContain('Let this be done?')
    expect((await client().approvals.get(id)).status).toBe('pending')
    const approved = await mem(['approvals', 'decide', id, 'approve'], { isTTY: true, stdin: 'y\n' })
    expect(approved.code).toBe(0)
    expect(await client().approvals.get(id)).toMatchObject({ status: 'approved', decisionBy: { id: 'local' } })
  })

  test('elsewhere it needs --yes; the same decision again does nothing, another is a conflict', async () => {
    const id = await approvalAsked()
    expect(await mem(['approvals', 'decide', id, 'reject'])).toMatchObject({ code: 1 })
    expect((await mem(['approvals', 'decide', id, 'request_changes', '--yes'])).code).toBe(1)
    expect((await mem(['approvals', 'decide', id, 'reject', '--yes', '--principal', 'user:eve'])).code).toBe(4)
    const send = [
      'approvals',
      'decide',
      id,
      'request_changes',
      '--reason',
      'To Pia alone',
      '--yes',
      '--decision-id',
      'd1',
    ]
    const { stdout, stderr } = await mem(send)
    expect(stdout).toContain(`${id}  changes_requested`)
    expect(stderr).toContain('mail.example.org')
    expect(await mem(send)).toMatchObject({ code: 0, stdout })
    const { items } = await json(['kernel', 'activity', '--type', 'approval.changes_requested'])
    expect(items).toMatchObject([{ actor: { type: 'user', id: 'local' } }])
    expect((await mem([...send.slice(0, 3), 'approve', '--yes', '--decision-id', 'd1'])).stderr).toContain(
      'other content',
    )
    expect((await mem(['approvals', 'decide', id, 'approve', '--yes'])).code).toBe(4)
    expect((await json(['approvals', 'list', '--status', 'changes_requested']))[0]).toMatchObject({
      id,
      decisionId: 'd1',
    })
  })
})
