package searchbench.sensei;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONException;
import com.senseidb.util.JSONUtil.FastJSONObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.json.JSONArray;
import org.json.JSONObject;
import proj.zoie.api.ZoieException;

/**
 * What Sensei's own HTTP lacks, below {@code /searchbench/}: {@code POST create}, {@code documents}
 * (one JSON object a line), {@code settle}, {@code analyse} (the text is the body); {@code GET
 * facts}. Answers are JSON that begins with {@code errorCode}; {@code error} says what went wrong.
 */
final class Endpoint extends HttpServlet {
  private static final long serialVersionUID = 1L;

  /** Far above any merge; who waits for so long has other troubles. */
  private static final long SETTLED_MS = 3_600_000;

  private final transient Node node;
  private final transient Intake intake;
  private final transient Analysis analysis = new Analysis();
  private final transient Path created;

  Endpoint(Node node, Intake intake, Path data) {
    this.node = node;
    this.intake = intake;
    this.created = data.resolve("created");
  }

  @Override
  protected void doGet(HttpServletRequest request, HttpServletResponse response)
      throws IOException {
    answer(request, response, "GET");
  }

  @Override
  protected void doPost(HttpServletRequest request, HttpServletResponse response)
      throws IOException {
    answer(request, response, "POST");
  }

  private void answer(HttpServletRequest request, HttpServletResponse response, String method)
      throws IOException {
    int status = 200;
    JSONObject said;
    request.setCharacterEncoding("UTF-8");
    try {
      switch (method + " " + request.getPathInfo()) {
        case "GET /facts":
          said = node.facts();
          break;
        case "POST /create":
          said = create();
          break;
        case "POST /documents":
          said = documents(request.getReader());
          break;
        case "POST /settle":
          node.settle(SETTLED_MS);
          said = new JSONObject().put("documents", node.documents());
          break;
        case "POST /analyse":
          said = analyse(request.getReader());
          break;
        default:
          status = 404;
          said = error("there is no " + method + " " + request.getPathInfo());
      }
    } catch (IllegalStateException refused) {
      status = 409;
      said = error(refused.getMessage());
    } catch (JSONException | org.json.JSONException wrong) {
      status = 400;
      said = error("this is not a document in JSON: " + wrong.getMessage());
    } catch (ZoieException | IOException | RuntimeException failure) {
      status = 500;
      said = error(String.valueOf(failure));
    } catch (InterruptedException stopping) {
      Thread.currentThread().interrupt();
      status = 503;
      said = error("the server is stopping");
    }
    // As Sensei's own answers begin, so that one rule tells whole answers from others.
    String rest = said.toString().substring(1);
    String whole = "{\"errorCode\":" + (status == 200 ? 0 : status) + (said.length() > 0 ? "," : "");
    byte[] body = (whole + rest).getBytes(StandardCharsets.UTF_8);
    response.setStatus(status);
    response.setContentType("application/json; charset=utf-8");
    response.setContentLength(body.length);
    response.getOutputStream().write(body);
  }

  private static JSONObject error(String message) {
    try {
      return new JSONObject().put("error", message);
    } catch (org.json.JSONException impossible) {
      throw new IllegalArgumentException(impossible);
    }
  }

  /** The schema was read from its file when the server started; this says whose index it is. */
  private JSONObject create() throws IOException {
    try {
      Files.createFile(created);
    } catch (FileAlreadyExistsException again) {
      throw new IllegalStateException("there is already an index here", again);
    }
    return new JSONObject();
  }

  private JSONObject documents(BufferedReader lines)
      throws IOException, InterruptedException, org.json.JSONException {
    Feed feed = node.feed();
    JSONArray refused = new JSONArray();
    int accepted = 0;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      if (!(JSON.parse(line) instanceof com.alibaba.fastjson.JSONObject inner)) {
        throw new org.json.JSONException("a line that is no object");
      }
      JSONObject document = new FastJSONObject(inner);
      String why = intake.trouble(document);
      if (why == null) {
        feed.accept(document);
        accepted++;
      } else {
        refused.put(new JSONObject().put("id", id(document)).put("reason", why));
      }
    }
    return new JSONObject().put("accepted", accepted).put("refused", refused);
  }

  /** The corpus's own id; it stands in what is stored. */
  private static String id(JSONObject document) {
    Object stored = JSON.parse(document.optString("src_data", "{}"));
    return stored instanceof com.alibaba.fastjson.JSONObject source
        ? String.valueOf(source.get("id"))
        : "?";
  }

  private JSONObject analyse(BufferedReader body) throws IOException, org.json.JSONException {
    StringBuilder text = new StringBuilder();
    char[] some = new char[8192];
    for (int count = body.read(some); count > 0; count = body.read(some)) {
      text.append(some, 0, count);
    }
    return new JSONObject().put("terms", new JSONArray(analysis.terms(text.toString())));
  }
}
