#include "report/timeline/svg.h"

#include "report/markup.h"

namespace xenoscope::report {

std::string Px(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Hex(Rgb colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

void OpenSvg(std::string& out, PixelSize size, double left, const std::string& title,
             const std::string& subtitle) {
  Put(out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#333\">\n"
      "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"{3}\" y=\"28\" font-size=\"17\" font-weight=\"600\" fill=\"#111\">{2}</text>\n"
      "<text x=\"{3}\" y=\"47\" fill=\"#666\">{4}</text>\n",
      Px(size.width), Px(size.height), Escaped(title), Px(left), Escaped(subtitle));
}

}  // namespace xenoscope::report
