// Draws the graph that the server names, in the colours of the page.

const PADDING = 24
const ZOOM_FIRST = 1.5
/** Between two Memories with their names. */
const GAP = 6
const ROUNDS = 200
/** Of what nothing is linked with. */
const COLUMN = 145
const ROW = 60

const canvas = document.querySelector('[data-graph]')
if (canvas) draw()

async function draw() {
  const response = await fetch(canvas.dataset.graph)
  if (!response.ok) return
  const { nodes, edges } = await response.json()
  canvas.hidden = false
  document.querySelector('[data-graph-hint]').hidden = false
  // Where many are, names show on pointing at one.
  const isDense = nodes.length > 40
  const graph = window.cytoscape({
    container: canvas,
    elements: [
      ...nodes.map((data, index) => ({ data, classes: data.type, position: onRing(index, nodes.length) })),
      ...edges.map((data) => ({ data, classes: data.label })),
    ],
    style: look(isDense),
    layout: { name: 'preset' },
    minZoom: 0.1,
    maxZoom: 3,
  })
  arrange(graph, isDense)
  if (!isDense) separate(graph)
  graph.fit(undefined, PADDING)
  // A few Memories are not blown up.
  graph.zoom(Math.min(graph.zoom(), ZOOM_FIRST))
  graph.center()
  graph.on('tap', 'node', ({ target }) => {
    location.href = canvas.dataset.memory + encodeURIComponent(target.id())
  })
  graph.on('mouseover', 'node', ({ target }) => {
    graph.elements().addClass('faint')
    target.closedNeighborhood().removeClass('faint').addClass('near')
    canvas.classList.add('pointing')
  })
  graph.on('mouseout', 'node', () => {
    graph.elements().removeClass('faint near')
    canvas.classList.remove('pointing')
  })
  const restyle = () => graph.style(look(isDense))
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle)
  new MutationObserver(restyle).observe(document.documentElement, { attributeFilter: ['data-theme'] })
}

/** Where the layout begins: the same graph is drawn alike each time. */
function onRing(index, count) {
  const angle = (2 * Math.PI * index) / count
  return { x: 400 * Math.cos(angle), y: 200 * Math.sin(angle) }
}

/** What is linked by its Edges, what is not in rows below. */
function arrange(graph, isDense) {
  const alone = graph.nodes('[[degree = 0]]')
  const linked = graph.elements().not(alone)
  const calm = { animate: false, fit: false, nodeDimensionsIncludeLabels: !isDense }
  linked
    .layout({
      name: 'cose',
      ...calm,
      randomize: false,
      idealEdgeLength: () => (isDense ? 160 : 100),
      nodeRepulsion: () => (isDense ? 400_000 : 20_000),
      componentSpacing: 70,
    })
    .run()
  turn(linked.nodes())
  const { x1, y2, w } = linked.empty() ? { x1: 0, y2: 0, w: 0 } : linked.boundingBox()
  const width = Math.max(w, canvas.clientWidth)
  const cols = Math.max(1, Math.floor(width / COLUMN))
  const boundingBox = { x1, y1: y2 + ROW / 2, w: width, h: Math.ceil(alone.length / cols) * ROW }
  alone.layout({ name: 'grid', ...calm, cols, boundingBox }).run()
}

/** Lays the longer side along the longer side of the canvas. */
function turn(nodes) {
  const { w, h } = nodes.boundingBox()
  if (w > h === canvas.clientWidth > canvas.clientHeight) return
  nodes.positions((node) => ({ x: node.position('y'), y: node.position('x') }))
}

/** Pushes Memories apart whose names would overlap, along the shorter way, until none do. */
function separate(graph) {
  const boxes = graph.nodes().map((node) => {
    const { x1, y1, w, h } = node.boundingBox()
    return { node, x: x1 + w / 2, y: y1 + h / 2, w, h, from: { x: x1 + w / 2, y: y1 + h / 2 } }
  })
  for (let round = 0; round < ROUNDS; round++) {
    let isFree = true
    for (const [index, a] of boxes.entries()) {
      for (const b of boxes.slice(index + 1)) {
        const over = { x: (a.w + b.w) / 2 - Math.abs(a.x - b.x) + GAP, y: (a.h + b.h) / 2 - Math.abs(a.y - b.y) + GAP }
        if (over.x <= 0 || over.y <= 0) continue
        isFree = false
        const axis = over.x < over.y ? 'x' : 'y'
        const step = (a[axis] <= b[axis] ? over[axis] : -over[axis]) / 2
        a[axis] -= step
        b[axis] += step
      }
    }
    if (isFree) break
  }
  for (const { node, x, y, from } of boxes) node.shift({ x: x - from.x, y: y - from.y })
}

/** Cytoscape knows no `light-dark()`: the browser is asked what each token comes to. */
function look(isDense) {
  const probe = document.createElement('i')
  canvas.append(probe)
  const colour = (token) => {
    probe.className = `c-${token}`
    return getComputedStyle(probe).color
  }
  const [ink, muted, line, accent, seed, auto] = ['ink', 'muted', 'line', 'accent', 'seed', 'auto'].map(colour)
  probe.remove()
  const ground = getComputedStyle(canvas).backgroundColor
  const textOpacity = isDense ? 0 : 1
  return [
    {
      selector: 'node',
      style: {
        'background-color': accent,
        width: 14,
        height: 14,
        label: 'data(label)',
        color: ink,
        'font-size': isDense ? 20 : 11,
        'text-opacity': textOpacity,
        'text-max-width': isDense ? 260 : 130,
        'text-wrap': isDense ? 'ellipsis' : 'wrap',
        'text-background-color': ground,
        'text-background-opacity': isDense ? 0 : 0.85,
        'text-valign': 'bottom',
        'text-margin-y': 4,
      },
    },
    { selector: 'node.seed', style: { 'background-color': seed, width: 22, height: 22, 'font-weight': 600 } },
    {
      selector: 'edge',
      style: {
        width: 1.2,
        opacity: isDense ? 0.35 : 0.9,
        'line-color': line,
        'target-arrow-color': line,
        'target-arrow-shape': 'triangle',
        'arrow-scale': 0.7,
        'curve-style': isDense ? 'haystack' : 'bezier',
        label: 'data(label)',
        'font-size': 8,
        color: muted,
        'text-opacity': textOpacity,
        'text-background-color': ground,
        'text-background-opacity': textOpacity,
        'text-background-padding': 1,
        'text-rotation': 'autorotate',
        'min-zoomed-font-size': 9,
      },
    },
    {
      selector: 'edge.vector_neighbor',
      style: { 'line-style': 'dashed', 'line-color': auto, 'target-arrow-color': auto },
    },
    { selector: '.faint', style: { opacity: 0.1 } },
    { selector: '.near', style: { opacity: 1, 'text-opacity': 1 } },
  ]
}
