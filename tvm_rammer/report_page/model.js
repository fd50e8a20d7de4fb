/* The data of the page as lanes: what each box is, once, and its times in each execution. */

const RUN = 0, WAIT = 1, JOINED = 2, LOOP = 3;

/* The numbers of the programs that are loops. */
const loopsOf = (data) => data.lanes.programs.flatMap((program, p) => (program.steps > 1 ? [p] : []));

/* A loop that is not open is one box a lane. */
function decodeLanes(data, open) {
  const programs = data.lanes.programs.map((program, p) =>
    program.steps > 1 && !open.has(p) ? closedLoop(program) : program);
  const count = Math.max(0, ...programs.map((program) => program.lanes.length));
  const lanes = Array.from({ length: count }, () => ({ kind: [], operator: [], a: [], b: [], c: [], program: [] }));
  const first = programs.map((program, p) =>
    program.lanes.map((numbers, v) => {
      const lane = lanes[v], begin = lane.kind.length;
      for (let i = 0; i < numbers.length; i += 5) {
        lane.kind.push(numbers[i]);
        lane.operator.push(numbers[i + 1]);
        lane.a.push(numbers[i + 2]);
        lane.b.push(numbers[i + 3]);
        lane.c.push(numbers[i + 4]);
        lane.program.push(p);
      }
      return begin;
    }));
  const panels = data.executions.map((name, e) => decodeExecution(data, programs, name, e, lanes, first));
  return { lanes, panels, programs };
}

function closedLoop(program) {
  return {
    name: program.name, needs: [], lanes: program.lanes.map(() => [LOOP, -1, program.steps, 0, 0]),
    executions: program.executions.map((run) => ({
      ...run, times: run.times.map(() => [0, run.makespan]), causes: [], path: [run.path.at(-2) ?? 0, 0],
    })),
  };
}

function decodeExecution(data, programs, name, e, lanes, first) {
  const launch = data.facts.launch_us;
  const panel = {
    name, title: { planned: "Planned", measured: "Measured" }[name], begins: [], ends: [], path: [], busy: [],
    start: lanes.map((lane) => new Float64Array(lane.kind.length)),
    end: lanes.map((lane) => new Float64Array(lane.kind.length)),
    critical: lanes.map((lane) => new Uint8Array(lane.kind.length)),
    causes: new Map(), total: 0, inRTasks: 0, makespan: 0,
  };
  programs.forEach((program, p) => {
    const run = program.executions[e], zero = panel.total + launch;
    run.times.forEach((times, v) => {
      let now = 0;
      for (let i = 0, n = first[p][v]; i < times.length; i += 2, n++) {
        panel.start[v][n] = zero + (now + times[i]) / 1000;
        now += times[i] + times[i + 1];
        panel.end[v][n] = zero + now / 1000;
      }
    });
    for (let i = 0; i < run.causes.length; i += 4) {
      const [v, n, cv, cn] = run.causes.slice(i, i + 4);
      panel.causes.set(v + ":" + (first[p][v] + n), [cv, first[p][cv] + cn]);
    }
    for (let i = 0; i < run.path.length; i += 2) {
      const v = run.path[i], n = first[p][v] + run.path[i + 1];
      panel.critical[v][n] = 1;
      panel.path.push([v, n]);
    }
    panel.begins.push(zero);
    panel.ends.push(zero + run.makespan / 1000);
    panel.busy.push(run.busy);
    panel.inRTasks += run.in_rtasks / 1000;
    panel.makespan += run.makespan / 1000;
    panel.total = zero + run.makespan / 1000;
  });
  return panel;
}

/* The first box of a lane that ends after a time. */
function firstAfter(ends, time) {
  let low = 0, high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/* What a box is, as a title and pairs of a label and a text. */
function describe(data, model, panelNumber, v, n) {
  const lane = model.lanes[v], kind = lane.kind[n], operator = data.operators[lane.operator[n]];
  const rows = [["vEU", String(v)]], name = operator ? operator[0] : "the end";
  let title = name;
  if (kind === RUN) {
    rows.push([lane.b[n] === 1 ? "rTask" : "rTasks", rtasksText(lane.a[n], lane.b[n], lane.c[n], operator[2])]);
    const kernel = data.kernels[operator[1]];
    if (kernel) rows.push(["kernel", kernel.function === name ? kernel.tiling : kernel.function + ", " + kernel.tiling]);
  } else if (kind === WAIT) {
    title = "Wait before " + name;
    rows.push(["waits for", needsText(data, model.programs[lane.program[n]], lane, n)]);
  } else if (kind === LOOP) {
    title = "Loop of " + plural(lane.a[n], "step");
    rows.push(["rProgram", model.programs[lane.program[n]].name], ["", "Enter or a double click opens it"]);
  } else {
    title = plural(lane.a[n], "run") + " of " + plural(lane.c[n], "operator") + ", " + plural(lane.b[n], "wait");
    if (operator) rows.push(["mostly", operator[0]]);
  }
  model.panels.forEach((panel) => {
    const took = panel.end[v][n] - panel.start[v][n];
    const from = panel.start[v][n] - panel.begins[lane.program[n]];
    rows.push([panel.name === "planned" ? "predicted" : panel.name, micros(took) + " µs, from " + micros(from) + " to " + micros(from + took) + " µs"]);
    if (kind === LOOP) rows.push(["a step", micros(took / lane.a[n]) + " µs"]);
  });
  const panel = model.panels[panelNumber];
  if (kind === RUN) {
    const waited = waitedBefore(lane, n).map((w) => causeText(data, model, panel, v, w));
    if (waited.length) rows.push(["waited for", waited.join("; ")]);
  } else if (kind === WAIT && panel.causes.has(v + ":" + n)) {
    rows.push(["last to come", causeText(data, model, panel, v, n)]);
  }
  if (panel.critical[v][n]) rows.push(["", "on the critical path of the " + panel.name + " run"]);
  return { title, rows };
}

function rtasksText(start, count, step, all) {
  const last = start + (count - 1) * step;
  const which = count === 1 ? String(start) : start + " to " + last + (step > 1 ? " by " + step : "");
  return which + " (of " + grouped(all, 0) + ")";
}

function needsText(data, program, lane, n) {
  if (lane.a[n] < 0) return "all vEUs, at a barrier";
  const [count, ...some] = program.needs[lane.a[n]];
  const names = some.map((number) => data.operators[number][0]).join(", ");
  const more = count > some.length ? " and " + (count - some.length) + " more" : "";
  return names + more + " (" + plural(lane.b[n], "signal") + ")";
}

/* The waits right before a box of a lane. */
function waitedBefore(lane, n) {
  const waits = [];
  for (let w = n - 1; w >= 0 && lane.kind[w] === WAIT && lane.program[w] === lane.program[n]; w--) waits.unshift(w);
  return waits;
}

function causeText(data, model, panel, v, w) {
  const took = " (" + micros(panel.end[v][w] - panel.start[v][w]) + " µs)", cause = panel.causes.get(v + ":" + w);
  if (!cause) return needsText(data, model.programs[model.lanes[v].program[w]], model.lanes[v], w) + took;
  const operator = data.operators[model.lanes[cause[0]].operator[cause[1]]];
  return (operator ? operator[0] : "a signal") + " on vEU " + cause[0] + took;
}
