// A button on every block of code that copies it: of a console, the commands alone, without "$".
function copied(block) {
  const text = block.innerText.replace(/\n$/, "");
  if (!block.closest(".highlight-console")) return text;
  const commands = [];
  let goesOn = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("$ ")) commands.push(line.slice(2));
    else if (goesOn) commands.push(line);
    else continue;
    goesOn = line.endsWith("\\");
  }
  return commands.join("\n");
}
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(copied(block));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.parentElement.append(button);
  }
});
