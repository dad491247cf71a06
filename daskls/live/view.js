// Draws a fit: stages on the left, cells on the right, colored by error as they are trained.
const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const WAITING = "#ffffff", TRAINED = "#9db7cf", LINE = "#8a8f98";
const SIZE = 350, LEFT = 54, TOP = 8, BOTTOM = 34, BAR = 80, UNITS = 1000;

function time(s) {
  const whole = Math.round(s);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function mix(a, b, t) {
  const part = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgb(${[0, 1, 2].map((i) => Math.round(part(a, i) * (1 - t) + part(b, i) * t)).join(",")})`;
}

function color(share) {
  const at = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return mix(VIRIDIS[i], VIRIDIS[i + 1], at - i);
}

function element(parent, tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  parent.append(made);
  return made;
}

function drawNumbers(place, numbers) {
  place.replaceChildren();
  element(place, "h4", numbers.title ?? "");
  const table = element(place, "table");
  for (const stage of numbers.stages ?? []) {
    const row = element(table, "tr");
    element(row, "td", stage.label);
    const track = element(element(row, "td"), "div", undefined, "track");
    const known = stage.done !== null && stage.total > 0;
    element(track, "div", undefined, "bar").style.width = `${known ? (100 * stage.done) / stage.total : 0}%`;
    element(row, "td", known ? `${stage.done.toLocaleString("en")} of ${stage.total.toLocaleString("en")}` : `${stage.total.toLocaleString("en")}`, "number");
    element(row, "td", time(stage.seconds), "number");
  }
  const facts = element(place, "div", undefined, "facts");
  const tell = (name, value) => { const line = element(facts, "div", `${name} `); element(line, "b", value); };
  if (numbers.ended) tell("The fit has", numbers.ended === "finished" ? "finished." : "stopped.");
  else if (numbers.left_s !== null && numbers.left_s !== undefined) tell("Time left in this stage:", time(numbers.left_s));
  if (numbers.error !== null && numbers.error !== undefined) tell(`${numbers.error_name}${numbers.ended ? "" : " so far"}:`, numbers.error_told);
  if (numbers.link) {
    const link = element(element(facts, "div", "On the dashboard: "), "a", numbers.link);
    link.href = numbers.link; link.target = "_blank";
  }
}

function drawMap(canvas, map, numbers) {
  const scale = window.devicePixelRatio || 1, width = LEFT + SIZE + BAR + 30, height = TOP + SIZE + BOTTOM;
  canvas.width = width * scale; canvas.height = height * scale;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  const cells = numbers.region_cells ?? [], errors = numbers.region_errors ?? [];
  const most = numbers.top_error;
  pen.lineWidth = map.polygons.length > 800 ? 0.3 : 0.7;
  pen.strokeStyle = LINE;
  map.polygons.forEach((polygon, i) => {
    pen.beginPath();
    polygon.forEach(([x, y], j) => {
      const at = [LEFT + (x / UNITS) * SIZE, TOP + (1 - y / UNITS) * SIZE];
      if (j) pen.lineTo(...at); else pen.moveTo(...at);
    });
    pen.closePath();
    const error = errors[i];
    pen.fillStyle = error !== null && error !== undefined ? color(error / most) : cells[i] ? TRAINED : WAITING;
    pen.fill(); pen.stroke();
  });
  pen.fillStyle = "#222"; pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center";
  const short = (v) => Number(v.toPrecision(3)).toString(), bottom = TOP + SIZE;
  pen.fillText(map.names[0], LEFT + SIZE / 2, bottom + 28, SIZE);
  if (map.limits) {
    const [[left, right], [low, high]] = map.limits;
    pen.textAlign = "left"; pen.fillText(short(left), LEFT, bottom + 14);
    pen.textAlign = "right"; pen.fillText(short(right), LEFT + SIZE, bottom + 14);
    pen.fillText(short(high), LEFT - 4, TOP + 10); pen.fillText(short(low), LEFT - 4, bottom);
  }
  if (map.names[1]) {
    pen.save(); pen.translate(12, TOP + SIZE / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center";
    pen.fillText(map.names[1], 0, 0, SIZE); pen.restore();
  }
  if (most) drawBar(pen, most, numbers);
}

function drawBar(pen, most, numbers) {
  const x = LEFT + SIZE + 14, steps = 60;
  for (let i = 0; i < steps; i++) {
    pen.fillStyle = color(i / (steps - 1));
    pen.fillRect(x, TOP + SIZE * (1 - (i + 1) / steps), 12, SIZE / steps + 1);
  }
  pen.fillStyle = "#222"; pen.textAlign = "left";
  const told = (error) => numbers.is_share ? `${(100 * error).toFixed(1)} %` : Number(error.toPrecision(2)).toString();
  for (const share of [0, 0.5, 1]) pen.fillText(told(share * most), x + 16, TOP + SIZE * (1 - share) + (share === 1 ? 9 : share === 0 ? 0 : 4));
  pen.save(); pen.translate(x + 72, TOP + SIZE / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center";
  pen.fillText(numbers.is_share ? "validation error" : numbers.error_label, 0, 0); pen.restore();
}

function render({ model, el }) {
  const root = element(el, "div", undefined, "daskls-live"), numbers = element(root, "div"), picture = element(root, "div");
  const canvas = element(picture, "canvas"), note = element(picture, "div", "", "note");
  const draw = () => {
    const now = model.get("numbers"), map = model.get("map");
    drawNumbers(numbers, now);
    if (map.polygons) { drawMap(canvas, map, now); note.textContent = map.note; }
  };
  model.on("change:numbers", draw);
  model.on("change:map", draw);
  draw();
}

export default { render };
