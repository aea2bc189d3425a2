// A file dropped on the box is read into it; nothing is sent before the form is.
const box = document.querySelector("textarea[name=document]");
const BYTES_MAX = 1024 * 1024;

const read = async (file) => {
  if (!file) return;
  box.setCustomValidity(file.size > BYTES_MAX ? "This file is larger than 1 MiB: use agentdex validate." : "");
  if (file.size <= BYTES_MAX) box.value = await file.text();
  box.reportValidity();
};

box?.addEventListener("input", () => box.setCustomValidity(""));
box?.addEventListener("dragover", (event) => event.preventDefault());
box?.addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  read(file);
});
