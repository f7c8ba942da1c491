// Makes elements. make('p', {class: 'x'}, child, 'text')
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A button whose press is told to the server: nobody but a person may press most of them. */
export function button(attributes, label, pressed) {
  const element = make('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', () => pressed(element));
  return element;
}
