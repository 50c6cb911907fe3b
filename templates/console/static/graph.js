// Draws the graph that the server names, in the colours of the page.

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
      ...nodes.map((data) => ({ data, classes: data.type })),
      ...edges.map((data) => ({ data, classes: data.label })),
    ],
    style: look(isDense),
    layout: {
      name: edges.length === 0 ? 'grid' : 'cose',
      animate: false,
      randomize: true,
      nodeDimensionsIncludeLabels: !isDense,
      idealEdgeLength: () => (isDense ? 160 : 90),
      nodeRepulsion: () => (isDense ? 400_000 : 9000),
      componentSpacing: 70,
      padding: 24,
    },
    minZoom: 0.1,
    maxZoom: 3,
  })
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
        'text-max-width': isDense ? 260 : 150,
        'text-wrap': 'ellipsis',
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
