package holdfast;

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import software.amazon.awssdk.http.SdkHttpMethod;
import software.amazon.awssdk.http.SdkHttpRequest;
import software.amazon.awssdk.http.auth.aws.signer.AwsV4HttpSigner;
import software.amazon.awssdk.identity.spi.AwsCredentialsIdentity;

/** Signs with IAM, which is a deployment's default: copy it, and add {@code software.amazon.awssdk:http-auth-aws} and {@code auth}. */
final class AwsSigner implements Signer {
  private final AwsV4HttpSigner signer = AwsV4HttpSigner.create();
  private final Supplier<? extends AwsCredentialsIdentity> credentials;
  private final String region;

  /** @param credentials such as {@code DefaultCredentialsProvider.create()::resolveCredentials} of the SDK */
  AwsSigner(Supplier<? extends AwsCredentialsIdentity> credentials, String region) {
    this.credentials = credentials;
    this.region = region;
  }

  @Override
  public Map<String, String> sign(String method, URI address, Map<String, String> headers, byte[] body) {
    var request = SdkHttpRequest.builder().method(SdkHttpMethod.fromValue(method)).uri(address);
    headers.forEach(request::putHeader);
    var signed = signer.sign(sign -> sign
        .identity(credentials.get())
        .request(request.build())
        .payload(() -> new ByteArrayInputStream(body))
        // For a function URL, lambda.
        .putProperty(AwsV4HttpSigner.SERVICE_SIGNING_NAME, "execute-api")
        .putProperty(AwsV4HttpSigner.REGION_NAME, region));
    var added = new TreeMap<String, String>();
    signed.request().forEachHeader((name, values) -> added.put(name, String.join(",", values)));
    return added;
  }
}
