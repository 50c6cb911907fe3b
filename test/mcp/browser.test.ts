import { once } from 'node:events'
import { createServer } from 'node:http'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { describeAtSite } from '../console/browser.ts'
import { startMemoryApi } from '../support/memory-api.ts'
import { freePort } from '../support/ports.ts'

/** What a page of another site does: the official client asks for the tools, and calls some. */
const SCRIPT = `
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
window.talk = async (url, options) => {
  const requestInit = { headers: { Authorization: 'Bearer secret' } }
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit })
  const client = new Client({ name: 'page', version: '1' }, options)
  await client.connect(transport)
  const { tools } = await client.listTools()
  const { structuredContent: workspace } = await client.callTool({ name: 'mem_create_workspace', arguments: { name: 'ü' } })
  const hasSession = transport.sessionId !== undefined
  await transport.terminateSession()
  await client.close()
  return { tools: tools.length, name: workspace.name, hasSession }
}`

/** A page of one origin, and a tool server of another that lists it. */
async function start(): Promise<{ url: string; mcp: string; stop(): Promise<void> }> {
  const { outputFiles } = await build({
    stdin: { contents: SCRIPT, resolveDir: packageRoot },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  })
  const pages = createServer((request, response) => {
    const isScript = request.url === '/ui/talk.js'
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? outputFiles[0]?.contents : '<!doctype html><script type="module" src="talk.js"></script>')
  })
  const port = await freePort()
  await once(pages.listen(port, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${port}`
  const env = { MEM_MCP_ENABLE: 'true', MEM_API_KEY: 'secret', MEM_ALLOWED_ORIGINS: url }
  const api = await startMemoryApi({ dialect: 'sqlite', env })
  return {
    url,
    mcp: `${api.url}/mcp`,
    stop: async () => {
      pages.closeAllConnections()
      pages.close()
      await api.stop()
    },
  }
}

describeAtSite(
  'a page of another site',
  start,
  async ({ open }) => void (await open('/')),
  (at) => {
    test.each([
      ['with a handshake', {}, true],
      ['with the stateless revision', { versionNegotiation: { mode: { pin: '2026-07-28' } } }, false],
    ])('uses the tools through the official client %s', async (_name, options, hasSession) => {
      const { page, site } = at()
      const talked = await page.evaluate(`talk(${JSON.stringify(site.mcp)}, ${JSON.stringify(options)})`)
      expect(talked).toEqual({ tools: 25, name: 'ü', hasSession })
    })
  },
)
