const $ = (id) => document.getElementById(id);
$("key").value = sessionStorage.getItem("key") || "";

function ask(path, body, signal) {
  const headers = { Authorization: "Bearer " + $("key").value.trim() };
  if (body) headers["Content-Type"] = "application/json";
  return fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
}

async function askJson(path, body) {
  const answer = await ask(path, body);
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error.message);
  return value;
}

async function* pieces(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      const choice = chunk.choices[0];
      if (choice) yield choice;
    }
  }
}
