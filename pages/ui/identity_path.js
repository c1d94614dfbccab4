// Two placements: drawings of their blocks beside each other or one over the other, with their equations. Nothing here asks the server.
const NORMS = ["input", "inner", "output", "outer"]

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".lab")
  const kept = root.kept ?? { view: "forward", show: "side", at: 0 }
  root.kept = kept

  root.innerHTML = `
    <div class="tools">
      ${choice("view", "The signal", { forward: "Forward", backward: "Backward" }, kept.view)}
      ${choice("show", "The drawings", { side: "Side by side", slide: "Slide from one to the other" }, kept.show)}
      <label class="slide"><span></span><input type="range" min="0" max="1" step="0.01" aria-label="From one placement to the other"><span></span></label>
    </div>
    <div class="sides"></div>`
  const slider = root.querySelector(".slide")
  const [from, range, to] = slider.children
  from.textContent = data.sides[0].title
  to.textContent = data.sides[1].title
  range.value = kept.at
  range.oninput = () => { kept.at = Number(range.value); slide(root, kept.at) }
  for (const input of root.querySelectorAll(".choice input")) {
    input.onchange = () => { kept[input.name] = input.value; draw(root, data, kept, slider) }
  }
  draw(root, data, kept, slider)
}

function choice(name, legend, options, chosen) {
  const labels = Object.entries(options).map(([value, text]) =>
    `<label><input type="radio" name="${name}" value="${value}" ${value === chosen ? "checked" : ""}>${text}</label>`)
  return `<div class="choice" role="radiogroup" aria-label="${legend}">${labels.join("")}</div>`
}

function draw(root, data, kept, slider) {
  const sides = root.querySelector(".sides")
  const over = kept.show === "slide"
  slider.style.visibility = over ? "visible" : "hidden"
  const blocks = data.sides.map((side) => `<div class="block">${side[kept.view]}</div>`)
  const texts = data.sides.map((side) => `<h3>${side.title}</h3>`)
  const formulas = data.sides.map((side) => `<dl class="formulas">${side.formulas}</dl>`)
  sides.innerHTML = over
    ? `<section><div class="morph">${blocks.join("")}</div></section><section>${texts[0]}${formulas[0]}<br>${texts[1]}${formulas[1]}</section>`
    : data.sides.map((_, i) => `<section>${texts[i]}${blocks[i]}${formulas[i]}</section>`).join("")
  for (const section of sides.children) light(over ? sides : section, section)
  if (over) slide(root, kept.at)
}

// A part of the drawing and the terms of the equations that stand for it light up together.
function light(scope, section) {
  section.onpointerover = ({ target }) => {
    const name = target.closest("[data-part]")?.dataset.part
    scope.classList.toggle("hovering", Boolean(name))
    for (const part of scope.querySelectorAll("[data-part]")) part.classList.toggle("lit", part.dataset.part === name)
  }
  section.onpointerleave = () => scope.classList.remove("hovering")
}

// Norms that only one side has slide to the places of those that only the other has; everything else fades over.
function slide(root, at) {
  const drawings = [...root.querySelectorAll(".morph svg")]
  const parts = drawings.map((svg) => new Map([...svg.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part])))
  const same = (name) => parts.every((side) => side.has(name)) && parts[0].get(name).innerHTML === parts[1].get(name).innerHTML
  drawings[1].querySelector("rect").style.opacity = 0 // its paper
  drawings.forEach((svg, i) => {
    const weight = i ? at : 1 - at
    for (const shape of svg.children) {
      if (!shape.dataset?.part && shape.tagName !== "rect") shape.style.opacity = weight
    }
    for (const [name, part] of parts[i]) {
      part.style.transform = ""
      part.style.opacity = same(name) ? 1 - i : weight
    }
  })
  for (const sublayer of ["attention", "feed_forward"]) {
    const only = [0, 1].map((i) => NORMS.map((site) => `${sublayer}.${site}`).filter((name) => parts[i].has(name) && !parts[1 - i].has(name)))
    only[0].slice(0, only[1].length).forEach((name, k) => {
      const [moving, goal] = [parts[0].get(name), parts[1].get(only[1][k])]
      const [x, y] = ["x", "y"].map((axis) => goal.querySelector("rect").getAttribute(axis) - moving.querySelector("rect").getAttribute(axis))
      moving.style.transform = `translate(${at * x}px, ${at * y}px)`
      moving.style.opacity = 1
      goal.style.opacity = 0
    })
  }
}
